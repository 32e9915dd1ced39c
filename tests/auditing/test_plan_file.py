"""Plan files: keys at the top are defaults of every block, and all mistakes name the file."""

from datetime import UTC, datetime

import pytest

from whosthere.auditing.options import DEFAULT_ATTACKS, AuditOptions, Block, merged
from whosthere.auditing.plan_file import read_plan_file
from whosthere.auditing.planning import make_plan
from whosthere.errors import InputError

ONE = """
mechanisms = ["raw", "suppress(k=1)"]
group_size = 20
attacks = "likelihood-ratio"
targets = 3
releases = 4
seed = 5
"""
TWO = """
group_size = [8, 10]
attacks = ["likelihood-ratio", "log-likelihood"]
seed = 5

[[blocks]]
mechanisms = "raw"

[[blocks]]
mechanisms = ["raw", "suppress(k=1)"]
group_size = 10
attacks = "zero-knowledge(sampling=independent)"
knowledge = ["all", "regions(top=2, guess=random)"]
"""


@pytest.fixture
def read(tmp_path):
    def run(text):
        path = tmp_path / "plan.toml"
        path.write_text(text)
        return read_plan_file(path)

    return run


def test_a_file_without_blocks_is_one_block(read):
    assert read(ONE) == AuditOptions.of(
        mechanisms=("raw", "suppress(k=1)"),
        group_size=20,
        attacks="likelihood-ratio",
        targets=3,
        releases=4,
        seed=5,
    )


def test_keys_at_the_top_are_defaults_of_every_block(read):
    options = read(TWO)
    assert options.blocks == (
        Block("raw", (8, 10), attacks=("likelihood-ratio", "log-likelihood")),
        Block(
            ("raw", "suppress(k=1)"),
            10,
            ("all", "regions(top=2, guess=random)"),
            "zero-knowledge(sampling=independent)",
        ),
    )
    assert options.seed == 5
    assert len(options.contests()) == 4 + 4


def test_what_is_left_out_has_its_default(read):
    options = read('[[blocks]]\nmechanisms = "raw"\ngroup_size = 8\n')
    assert options == AuditOptions.of(mechanisms="raw", group_size=8)
    assert tuple(map(str, options.attacks)) == DEFAULT_ATTACKS


def test_an_empty_file_leaves_everything_to_the_options(read):
    assert merged(read(""), {"mechanisms": "raw", "group_size": 8}) == AuditOptions.of(
        mechanisms="raw", group_size=8
    )


def test_the_order_of_keys_is_free(read):
    turned = "\n".join(reversed(ONE.splitlines()))
    assert read(turned) == read(ONE)


def test_one_block_need_not_be_a_list(read):
    assert read(f"{ONE}[blocks]\nknowledge = 'regions'\n") == merged(
        read(ONE), {"knowledge": "regions"}
    )


def test_blocks_that_overlap_measure_the_common_part_once(read, traces):
    text = ONE.replace("20", "10") + (
        '[[blocks]]\nattacks = ["likelihood-ratio", "log-likelihood"]\nmechanisms = "raw"\n'
        "[[blocks]]\n"
    )
    plan = make_plan(read(text), traces)
    assert plan.to_json()["contests"] == {
        "raw, m=10": ["likelihood-ratio", "log-likelihood"],
        "suppress(k=1), m=10": ["likelihood-ratio"],
    }
    assert len(plan.tasks) == 2 * 3


def test_options_override_in_every_block(read):
    options = merged(read(TWO), {"group_size": (9,), "seed": 6, "attacks": ("log-likelihood",)})
    assert [str(one) for one in options.contests()] == [
        "log-likelihood in raw, m=9",
        "log-likelihood in raw, m=9, knows regions(top=2, guess=random)",
        "log-likelihood in suppress(k=1), m=9",
        "log-likelihood in suppress(k=1), m=9, knows regions(top=2, guess=random)",
    ]
    assert options.seed == 6


@pytest.mark.parametrize(
    ("written", "moment"),
    [
        ("2013-11-02", datetime(2013, 11, 2)),
        ("2013-11-02T05:30:00", datetime(2013, 11, 2, 5, 30)),
        ("2013-11-02T05:30:00Z", datetime(2013, 11, 2, 5, 30, tzinfo=UTC)),
    ],
)
def test_times(read, written, moment):
    assert read(f"{ONE}test_from = {written}\n").test_from == moment


def test_people(read, traces):
    named = read(ONE.replace("group_size = 20", "group_size = 8") + 'users = ["u30", "u31"]\n')
    assert make_plan(named, traces).targets == (30, 31)
    assert len(make_plan(merged(named, {"targets": 4}), traces).targets) == 4
    assert make_plan(merged(named, {"users": ("u32",)}), traces).targets == (32,)
    assert read(ONE + 'users = "u30"\n').users == ("u30",)


def test_every_number_is_read(read):
    text = "targets = 9\nmin_visits = 2\nreleases = 6\ncontrol_releases = 0\nscale = 'paper'\n"
    text += "reference_size = 11\npast_releases = 8\nseed = 4\n"
    text += "[releases_of]\nlikelihood-ratio = 8\n'zero-knowledge(groups=20)' = 4\n"
    assert read(text) == AuditOptions(
        (Block(),),
        scale="paper",
        targets=9,
        min_visits=2,
        releases=6,
        releases_of={"likelihood-ratio": 8, "zero-knowledge(groups=20)": 4},
        control_releases=0,
        reference_size=11,
        past_releases=8,
        seed=4,
    )


# What a file holds, what the message must name, and how it must help.
WRONG = [
    (ONE + "mechanism = 'raw'\n", "'mechanism'", "'mechanisms'?"),
    (ONE.replace("targets = 3", "targets = 'three'"), "targets should be", "found 'three'"),
    (ONE.replace("targets = 3", "targets = 3.0"), "targets should be", "found 3.0"),
    (ONE.replace("targets = 3", "targets = true"), "targets should be", "found true"),
    (ONE + "target_ids = ['u30']\n", "'target_ids'", "Known"),
    (ONE + "sampling = 'paired'\n", "'sampling'", "Known"),
    ("mechanisms = [", "valid TOML", "key = value"),
    (ONE.replace("releases = 4", "releases = 5"), "releases must be even", "got 5"),
    (ONE + "releases_of = { likelihood-ratio = 5 }\n", "releases of likelihood-ratio", "got 5"),
    (ONE + "releases_of = { likelihood-ratio = '6' }\n", "releases_of.likelihood-ratio", "'6'"),
    (ONE + "releases_of = 6\n", "releases_of should be", "found 6"),
    (ONE.replace("seed = 5", "seed = -5"), "the seed must be a whole number from 0", "not -5"),
    (ONE.replace("20", "1"), "a group of 1", "at least 2"),
    (ONE.replace("likelihood-ratio", "likelihood-ration"), "character 1", "'likelihood-ratio'?"),
    (ONE.replace("suppress(k=1)", "suppress(k)"), "'suppress(k)', character", "suppress(k=1)"),
    (ONE + "knowledge = 'much'\n", "'much'", "all, share, regions"),
    (ONE + "scale = 'papr'\n", "'papr'", "'paper'?"),
    (TWO + "targets = 3\n", "'targets' in blocks, number 2", "attacks"),
    (TWO + "[blocks.extra]\n", "'extra' in blocks, number 2", "Known"),
    ("blocks = 3\n", "blocks, number 1", "found 3"),
    (TWO.replace("group_size = 10", "group_size = [9, 'x']"), "group_size, number 2", "'x'"),
    (ONE + "test_from = 'today'\n", "test_from should be", "found 'today'"),
    (ONE + "test_from = 12:00:00\n", "test_from should be", "found 12:00:00"),
]


@pytest.mark.parametrize(("text", "named", "fix"), WRONG)
def test_mistakes_name_the_file_and_help(read, tmp_path, text, named, fix):
    with pytest.raises(InputError) as error:
        read(text)
    message = str(error.value)
    assert message.startswith(str(tmp_path / "plan.toml"))
    assert named in message
    assert fix in message
