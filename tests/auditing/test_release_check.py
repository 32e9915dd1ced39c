"""The release at hand: who in it would be found, and the verdict on it."""

import json
import stat
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import polars as pl
import pytest

import whosthere as wt
from whosthere.adversary.attacks.base import AttackOnEverybody
from whosthere.auditing.policy import Policy
from whosthere.auditing.release_check import _Judge, coarser_ones
from whosthere.data.traces import Traces
from whosthere.game.counted import counted_people
from whosthere.game.release_check import Scored

SPEC, K, PLANTED = "suppress(k=5)", 5, (600, 601, 602)
LENIENT = {"tpr_at_fpr_1pct": 0.1}


@pytest.fixture(scope="module")
def crowd():
    """Return 600 people who make 5 visits in 20 regions over 48 hours, wherever people go."""
    rng = np.random.default_rng(3)
    weight = np.outer(rng.gamma(1.0, 1.0, 20), rng.gamma(2.0, 1.0, 48)).ravel()
    drawn = [rng.choice(960, 5, replace=False, p=weight / weight.sum()) for _ in range(600)]
    return traces_of([np.sort(one) for one in drawn])


@pytest.fixture(scope="module")
def planted(crowd):
    """Return them with three more, who go where exactly five others are, 10 times each.

    Their visits are published as 6. Without them, 0 is.
    """
    full = np.random.default_rng(4).permutation(np.flatnonzero(crowd.counts().ravel() == K))
    own = [np.sort(full[10 * i : 10 * (i + 1)]) for i in range(3)]
    assert min(map(len, own)) == 10
    return traces_of([*(crowd.trace(i) for i in range(600)), *own])


def traces_of(cells):
    return Traces(
        tuple(f"secret-{i:04}" for i in range(len(cells))),
        np.cumsum([0, *map(len, cells)]),
        np.concatenate(cells).astype(np.int32),
        wt.Regions([f"r{i:02}" for i in range(20)], np.arange(20) / 100, np.full(20, 45.0)),
        wt.Epochs.from_json(
            {"start": "2024-05-01T00:00:00+00:00", "length": "1h", "n": 48, "timezone": "UTC"}
        ),
    )


def check(release, traces, **chosen):
    return wt.check(release, traces=traces, **{"releases": 20} | chosen)


def publish(traces, spec, **chosen):
    return wt.publish(traces, spec, **{"seed": 1} | chosen).release


@pytest.fixture(scope="module")
def found(planted):
    return check(publish(planted, SPEC), planted, policy=LENIENT, seed=2)


def test_three_people_who_are_easy_to_find_are_named(found):
    first = found.people.sort("score", descending=True).head(3)
    assert set(first["row"]) == set(PLANTED)
    assert first["chance"].to_list() == [1 / 604] * 3
    assert first["without"].max() < 0 < first["score"].min()
    assert first["again"].is_between(0, 1).all()


def test_the_ends_of_an_interval_decide_and_not_the_estimate(planted):
    """With each limit more, there is less error for each, so that ends are further out."""
    release = publish(planted, "suppress(k=1)")

    def judged(**limits):
        return check(release, planted, policy=limits, what_if=False)

    (one,) = (one for one in judged(pooled_auc=0.99).findings if one.metric == "pooled_auc")
    low, high = one.at_least, one.at_most
    assert low < one.estimate < high
    between = [(low - 0.001, "reject"), ((low + one.estimate) / 2, "cannot tell"),
               ((high + one.estimate) / 2, "cannot tell"), (high + 0.001, "accept")]  # fmt: skip
    for limit, decision in between:
        assert judged(pooled_auc=limit).verdict.decision == decision
    both = judged(pooled_auc=0.99, tpr_at_fpr_1pct=0.99)
    (other,) = (one for one in both.findings if one.metric == "pooled_auc")
    assert (other.low, other.high) == (one.low, one.high)
    assert other.at_least < low


def test_who_is_in_is_in_and_nobody_else():
    left_out = np.arange(40) % 20 == np.arange(20)[:, None]
    scored = Scored(np.full(40, 5, "f4"), np.where(left_out, 0, 5).astype("f4"), left_out)
    judge = _Judge(Policy.of({"pooled_auc": 0.6}), ("likelihood-ratio",))
    assert {one.metric: one.estimate for one in judge.findings("here", [scored])} == {
        "tpr_at_fpr_1pct": 0.0, "pooled_auc": 1.0,
    }  # fmt: skip


def test_coarser_publications_are_as_coarse_as_they_say(crowd):
    release = publish(crowd, SPEC)
    counted, over = counted_people([release], crowd, np.arange(600), ())
    shapes = {one.setting.split(", ")[1]: one.counted.everybody[0].shape
              for one in coarser_ones(counted, over)}  # fmt: skip
    assert shapes == {
        "regions=2": (10, 48), "regions=4": (5, 48), "epochs=2h": (20, 24), "epochs=4h": (20, 12),
        "m=600": (20, 48),
    }  # fmt: skip


def test_they_are_named_in_what_is_for_the_publisher_alone(found):
    said = found.to_json()
    shown = [json.dumps(said), repr(found), found._repr_html_(), wt.report(found).html]
    for text in shown:
        assert "secret-" not in text
    assert said.keys() == {
        *(
            "verdict",
            "exposed",
            "coarser",
            "policy",
            "group_size",
            "mechanisms",
            "warnings",
            "notes",
        ),
        "findings",
    }
    # Whoever changes the people changes nothing else.
    nobody = replace(found, people=found.people.clear())
    assert [repr(nobody), nobody._repr_html_(), wt.report(nobody).html] == shown[1:]


def test_numbers_of_people_are_multiples_of_five(found):
    [one] = found.exposed
    m = found.releases[0].group_size
    for n in (one.people, one.low, one.high, round(one.again * m, 6)):
        assert n % 5 == 0
    for one in found.findings:
        if one.metric == "tpr_at_fpr_1pct":
            for share in (one.estimate, one.low, one.high, one.low_to_decide, one.high_to_decide):
                assert round(share * m, 6) % 5 == 0 or share == 1


@pytest.mark.parametrize("spec", ["laplace(eps=0.001, unit=event)", "suppress(k=500)"])
def test_where_there_is_nothing_to_find_nobody_is_named_beyond_the_false_alarms(crowd, spec):
    """Of five times 600 people, 58 or more are named with a chance of 0.1 % (beta-binomial)."""
    named = 0
    for seed in range(5):
        found = check(publish(crowd, spec, seed=seed), crowd, policy=LENIENT, seed=seed)
        assert found.verdict.decision == "accept"
        assert found.exposed[0].beyond_chance[1] == 0
        assert not found.coarser
        named += found.people.height
    assert named <= 57


def test_everybody_stands_out_in_raw_counts_and_what_is_withheld_helps(planted):
    found = check(publish(planted, "raw"), planted, policy={"pooled_auc": 0.6})
    assert found.verdict.decision == "reject"
    tried = {one.setting: one.decision for one in found.coarser}
    assert list(tried) == [
        "raw, regions=2, m=603",
        "raw, regions=4, m=603",
        "raw, epochs=2h, m=603",
        "raw, epochs=4h, m=603",
        "suppress(k=1), m=603",
        "suppress(k=3), m=603",
    ]
    assert found.coarser[0].left["pattern_correlation"] < 1
    assert found.verdict.left["pattern_correlation"] == 1
    kept = [one.left["visits_kept"] for one in found.coarser[4:]]
    assert 1 > kept[0] > kept[1]


def test_the_same_seed_gives_the_same_and_another_one_other_tables(planted, found):
    release = publish(planted, SPEC)
    again = check(release, planted, policy=LENIENT, seed=2)
    assert again.to_json() == found.to_json()
    assert again.people.equals(found.people)
    other = check(release, planted, policy=LENIENT, seed=3)
    assert not other.people["without"].equals(found.people["without"])


def test_a_file_of_people_is_private_and_has_ids_only_if_asked(found, planted, tmp_path):
    found.save_people(tmp_path / "rows.csv")
    found.save_people(tmp_path / "ids.csv", users=planted.users)
    assert stat.S_IMODE((tmp_path / "rows.csv").stat().st_mode) == 0o600
    assert "secret" not in (tmp_path / "rows.csv").read_text()
    assert "user" not in found.people.columns
    ids = pl.read_csv(tmp_path / "ids.csv").head(3)
    assert ids["user"].to_list() == [planted.users[row] for row in ids["row"]]


def test_a_part_of_the_traces_is_named_by_rows_or_ids(planted, tmp_path):
    group = np.arange(100, 603)
    release = publish(planted, SPEC, group=group)
    with pytest.raises(wt.InputError, match=r"503 people, and 603 .*`group`"):
        check(release, planted)
    by_rows = check(release, planted, group=group, policy=LENIENT, what_if=False)
    (tmp_path / "ids.csv").write_text("\n".join(["user", *planted.users[100:]]) + "\n")
    by_ids = check(release, planted, group=tmp_path / "ids.csv", policy=LENIENT, what_if=False)
    assert by_rows.to_json() == by_ids.to_json()
    assert min(by_rows.people["row"]) >= 100
    (tmp_path / "ids.csv").write_text("secret-0001\nnobody\nno one\n")
    with pytest.raises(wt.InputError, match=r"2 of 3 ids are not in the traces") as caught:
        check(release, planted, group=tmp_path / "ids.csv")
    assert "nobody" not in str(caught.value)
    for content, problem in (("secret-0001\n" * 2, "names somebody twice"), ("user\n", "nobody")):
        (tmp_path / "ids.csv").write_text(content)
        with pytest.raises(wt.InputError, match=rf"ids\.csv: .*{problem}"):
            check(release, planted, group=tmp_path / "ids.csv")


def test_another_programs_table_is_laid_over_the_cells_of_the_traces(planted, found):
    """What is not in the table is 0, as its publisher leaves out regions and hours without any."""
    frame = publish(planted, SPEC).to_frame().filter(pl.col("count") > 0)
    checked = check(frame, planted, mechanism=SPEC, policy=LENIENT, seed=2)
    assert checked.to_json()["exposed"] == found.to_json()["exposed"]
    assert checked.people.equals(found.people)
    busy = frame["region"][0]
    with pytest.raises(wt.InputError, match="1 regions of the table are not in the traces"):
        wt.check(
            frame.with_columns(pl.col("region").str.replace(busy, "r99")), SPEC, traces=planted
        )
    later = frame.with_columns(pl.col("epoch_start").dt.offset_by("47h"))
    with pytest.raises(wt.InputError, match="the table has 4"):
        wt.check(later, SPEC, traces=planted)


def test_tables_that_are_published_together_find_more_people(planted):
    specs = ["finest: suppress(k=3)", "epochs=4h: suppress(k=3)"]
    both = wt.publish(planted, tables=specs, seed=1).releases
    policy = {"pooled_auc": 0.6}
    together = check(list(both), planted, policy=policy)
    alone = check(both[0], planted, policy=policy, what_if=False)
    aucs = [
        next(one.estimate for one in checked.findings if one.metric == "pooled_auc")
        for checked in (alone, together)
    ]
    assert aucs[1] > aucs[0]
    assert [one.setting for one in together.coarser] == [
        "suppress(k=3) over epochs=4h, m=603",
        "suppress(k=3), m=603",
    ]


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ({"attacks": "zero-knowledge"}, "zero-knowledge cannot score everybody"),
        ({"releases": 19}, "19 tables cannot be made anew"),
        ({"releases": 604}, "as many as there are people"),
        ({"releases": "x"}, "releases"),
        ({"policy": {"auc": 0.6}}, "limits nothing that one release"),
        ({"visits": 10}, "`visits`"),
        ({"group": [1, 1]}, "twice"),
        ({"group": [700]}, "rows must lie"),
        ({"group_size": 7}, "release of 603 people"),
        ({"tables": ["finest", "finest"]}, "cells of 2 tables"),
        ({"tables": ["epochs=7h"]}, "the table has 48 epochs"),
        ({"seed": -1}, "seed"),
        ({"mechanism": "raw"}, "release of 603 people"),
    ],
)
def test_what_cannot_be_checked_is_refused(planted, chosen, said):
    with pytest.raises(wt.InputError, match=said):
        check(publish(planted, SPEC), planted, **chosen)


def test_without_traces_there_is_nobody_to_name(planted):
    with pytest.raises(wt.InputError, match="`traces`"):
        wt.check(publish(planted, SPEC), group=[1, 2])


def test_no_table_at_all_is_refused(crowd):
    with pytest.raises(wt.InputError, match="no table is given"):
        check([], crowd)


def test_a_release_of_very_few_is_refused(crowd):
    few = crowd.select(np.arange(19))
    with pytest.raises(wt.InputError, match="a release of 19 people is too small"):
        check(publish(few, "raw"), few)


def test_a_limit_within_an_interval_leaves_the_verdict_open(found, planted):
    one = next(one for one in found.findings if one.metric == "tpr_at_fpr_1pct")
    verdicts = [
        check(
            publish(planted, SPEC), planted, policy={one.metric: most}, seed=2, what_if=False
        ).verdict
        for most in (one.estimate, one.high_to_decide, one.high_to_decide - 0.001)
    ]
    assert [each.decision for each in verdicts] == ["cannot tell", "accept", "cannot tell"]


@dataclass(frozen=True)
class Busy(AttackOnEverybody):
    """Score people by the sum of published counts where they were."""

    name: ClassVar[str] = "busy"
    summary: ClassVar[str] = "sums"

    def fit(self, facts, knowledge, auxiliary, *, seed):
        raise NotImplementedError

    def scorer(self, views):
        people = views[0].knowledge

        def score(releases):
            values = releases[0].values.reshape(-1).astype(float)
            return people.sums(values, np.arange(people.n_users))

        return score


def test_any_attack_on_everybody_is_tried_and_only_the_strongest_one_can_accept(planted):
    release = publish(planted, SPEC)
    alone = check(release, planted, attacks=Busy(), policy={"pooled_auc": 1.0})
    assert alone.verdict.decision == "cannot tell"
    assert alone.verdict.reasons == ("It was not attacked by likelihood-ratio.",)
    both = check(release, planted, attacks=[Busy(), "likelihood-ratio"], policy={"pooled_auc": 1})
    assert both.verdict.decision == "accept"
    assert [one.attack for one in both.exposed] == ["busy", "likelihood-ratio"]
    assert set(both.people["attack"]) <= {"busy", "likelihood-ratio"}


def test_other_people_are_refused_by_the_number_of_cells(crowd, planted):
    others = crowd.select(np.r_[1:600, 0])
    assert others.users[0] != crowd.users[0]
    mirrored = traces_of([np.sort(959 - planted.trace(i)) for i in range(603)])
    with pytest.raises(wt.InputError, match=r"of 960 published values cannot") as caught:
        wt.check(publish(planted, SPEC), traces=mirrored)
    assert "secret" not in str(caught.value)


def test_the_page_and_the_notebook_show_the_verdict(found):
    html = wt.report(found).html
    assert "Who would be found in this release?" in html
    assert SPEC in html
    assert found.verdict.decision.upper() in found._repr_html_()
