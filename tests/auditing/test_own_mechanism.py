"""A mechanism of a user's own: any function of a whole table, audited by what needs no law."""

import cloudpickle
import numpy as np
import pytest

import whosthere as wt
from whosthere.adversary.attacks import Attack, Auxiliary, NotApplicableError
from whosthere.adversary.groups import GroupSampler
from whosthere.auditing.options import AuditOptions
from whosthere.auditing.planning import make_plan
from whosthere.auditing.policy import Policy
from whosthere.auditing.prospects import prospects
from whosthere.auditing.run import prepare_audit
from whosthere.cli.main import main
from whosthere.errors import FileError, InputError, SpecError
from whosthere.game.rounds import Population
from whosthere.game.scoring import score_task
from whosthere.mechanisms import own
from whosthere.privacy.facts import Facts
from whosthere.privacy.step import Span

M = 30
QUICK = "zero-knowledge(groups=20, validation=10, reference=60)"
SMALL = {
    "group_size": M,
    "attacks": [QUICK, "knock-knock(groups=20, validation=10)", "likelihood-ratio"],
    "targets": 5,
    "releases": 4,
    "seed": 1,
    "workers": 1,
}


def shift(counts, m, rng):
    """Swap the counts of all regions in a circle, which only a whole table can do."""
    assert counts.ndim == 2
    return np.roll(counts, int(rng.integers(2)), axis=0)


MINE = own(shift, then="suppress(k=1)")


@pytest.fixture(scope="module")
def traces():
    return wt.simulate("milan-like", seed=5, users=400, regions=9, days=1).traces()


@pytest.fixture(scope="module")
def run(traces, tmp_path_factory):
    return tmp_path_factory.mktemp("own") / "run"


@pytest.fixture(scope="module")
def result(traces, run):
    return wt.audit(traces, mechanisms=[MINE, "raw"], out=run, **SMALL)


# The mechanism


def test_it_is_a_mechanism_that_publishes_whole_tables(traces):
    made = wt.publish(traces, MINE, group_size=M, seed=1)
    shifted = [np.roll(made.truth, by, axis=0) for by in (0, 1)]
    assert any(np.array_equal(made.release.values, np.where(t > 1, t, 0)) for t in shifted)
    again = wt.publish(traces, MINE, group_size=M, seed=1)
    assert again.release == made.release
    assert str(MINE) == "shift | suppress(k=1)"
    assert "own function shift" in made.release.describe()


def test_what_asks_for_its_law_is_refused():
    assert not MINE.has_law
    for ask in (lambda: MINE.pmf(1, 1, M), lambda: MINE.steps[0].lands(Span(0, M), Span(0, M))):
        with pytest.raises(InputError, match="chance of a published count is not known"):
            ask()
    assert MINE.tabulated(M) is None
    assert MINE.expected(M) is None


def test_nothing_is_guaranteed():
    assert MINE.guarantee is None
    assert "own function does cannot be checked" in MINE.describe()


def test_noise_besides_is_refused():
    with pytest.raises(SpecError, match="both leave something to chance"):
        own(shift, then="laplace(eps=1)")


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda counts, m, rng: counts[:1], "counts of shape"),
        (lambda counts, m, rng: counts / 2, "no whole numbers, but float64"),
        (lambda counts, m, rng: counts + m, "counts from .* Keep them from 0 to 30"),
        (lambda counts, m, rng: counts - 1, "counts from -1"),
        (lambda counts, m, rng: None, "counts of shape"),
    ],
)
def test_a_function_that_returns_anything_else_is_refused_at_once(traces, function, message):
    options = AuditOptions.of(mechanisms=own(function, name="mine"), group_size=M, targets=2)
    with pytest.raises(InputError, match=f"the function mine returned.*{message}"):
        make_plan(options, traces)


def test_a_function_cannot_change_the_true_counts(traces):
    def in_place(counts, m, rng):
        counts[:] = 0
        return counts

    made = wt.publish(traces, own(in_place), group_size=M, seed=1)
    assert not made.release.values.any()
    assert made.truth.any()


@pytest.mark.parametrize("name", ["raw", "Suppress", "a b", "x|y", "", "<b>", "9", "x" * 41, "m=3"])
def test_names_that_mean_something_else_are_refused(name):
    with pytest.raises(SpecError, match="name"):
        own(shift, name=name)
    with pytest.raises(SpecError, match="cannot be the name"):
        own(lambda counts, m, rng: counts)
    with pytest.raises(SpecError, match="is no function"):
        own("suppress(k=1)", name="mine")


def test_a_function_that_cannot_be_called_is_refused_at_once():
    with pytest.raises(SpecError, match=r"three arguments.*Declare it as function\(counts, m, rng"):
        own(lambda counts: counts, name="mine")


def test_a_mask_is_not_lost(traces):
    def hides(counts, m, rng):
        return np.ma.masked_less(counts, 3)

    with pytest.raises(InputError, match="returned a masked table"):
        wt.publish(traces, own(hides), group_size=M, seed=1)


def test_a_bare_function_is_refused_with_the_way_to_wrap_it():
    with pytest.raises(SpecError, match=r"Wrap it: wt.mechanisms.own\("):
        AuditOptions.of(mechanisms=[shift], group_size=M)


def test_two_functions_of_one_name_are_refused():
    others = [own(lambda counts, m, rng: counts, name="shift", then="suppress(k=1)"), MINE]
    with pytest.raises(SpecError, match="both called shift"):
        AuditOptions.of(mechanisms=others, group_size=M)
    assert AuditOptions.of(mechanisms=[MINE, MINE], group_size=M).blocks[0].mechanisms == (MINE,)


# What attackers make of it


def test_groups_to_learn_from_are_published_as_a_whole(traces, rng):
    sampler = GroupSampler(traces, traces.trace(0), M, own(shift))
    same = own(lambda counts, m, rng: counts, name="same")
    raw = GroupSampler(traces, traces.trace(0), M, same)
    for sampling in ("paired", "independent"):
        made = sampler.sample(20, sampling, np.random.default_rng(3)).counts.dense()
        true = raw.sample(20, sampling, np.random.default_rng(3)).counts.dense()
        by = [_shifted_by(one, two, traces.shape) for one, two in zip(made, true, strict=True)]
        assert set(by) == {0, 1}
        # Both of a pair are shifted alike.
        assert sampling == "independent" or by[::2] == by[1::2]
        some = np.array([3, 17, 40])
        part = sampler.sample(20, sampling, np.random.default_rng(3), cells=some).counts.dense()
        assert np.array_equal(part, made[:, some])


def _shifted_by(made, true, shape):
    return next(
        by
        for by in (0, 1)
        if np.array_equal(made.reshape(shape), np.roll(true.reshape(shape), by, axis=0))
    )


@pytest.mark.parametrize("spec", ["likelihood-ratio", "zero-knowledge(marginals=mechanism)"])
def test_attacks_that_need_its_law_say_why_they_do_not_apply(traces, spec):
    facts = Facts.of(traces, M, MINE)
    with pytest.raises(NotApplicableError, match="a function of a whole table, nobody knows it"):
        Attack.parse(spec).check(facts, traces.select([0]), Auxiliary())


def test_one_release_can_be_attacked_but_not_read_back(traces, tmp_path):
    release = wt.publish(traces, MINE, group_size=M, seed=1).release
    assert np.isfinite(wt.attack(release, traces.trace(0), QUICK).score)
    for name in ("r.parquet", "r.csv"):
        release.save(tmp_path / name)
        with pytest.raises(FileError, match="a mechanism of its publisher's own, whose code"):
            wt.Release.load(tmp_path / name)


# What an audit says


def test_it_is_judged_by_attacks_that_need_no_law(result):
    mine, raw = result.verdicts
    by_setting = {name: set(group) for name, group in result.plan["contests"].items()}
    assert by_setting[mine.setting] == {QUICK, "knock-knock(groups=20, validation=10)"}
    assert "likelihood-ratio" in by_setting[raw.setting]
    assert any("likelihood-ratio is left out of 1 of 2 settings" in one for one in result.cautions)
    lines = {one.attack for one in result.findings if one.setting == mine.setting}
    assert lines == {*by_setting[mine.setting], "utility"}
    metrics = {one.metric for one in result.findings if one.setting == mine.setting}
    assert "faults" in metrics
    assert "law_control" not in metrics
    assert "law_control" in {one.metric for one in result.findings}
    assert result.trusted
    assert not result.scores["score"].null_count()
    assert mine.setting not in set(result.leaks["setting"])
    assert mine.own_mechanism
    assert not raw.own_mechanism


def test_it_is_never_accepted_and_both_reasons_are_said(traces):
    nothing = own(lambda counts, m, rng: np.zeros_like(counts), name="nothing")
    small = SMALL | {"attacks": QUICK, "targets": 12}
    found = wt.audit(traces, mechanisms=nothing, policy={"auc": 0.9}, **small)
    [verdict] = found.verdicts
    page = wt.report(found).html
    assert "a mechanism of your own is never accepted" in page.split("What to do")[1][:300]
    assert verdict.decision == "cannot tell"
    assert "No attack exceeds a limit." in verdict.reasons
    [why] = [one for one in verdict.reasons if "function of your own" in one]
    assert "never accepted: only attacks weaker than likelihood-ratio can be tried" in why
    assert "cannot be checked against their law" in why
    assert "(own mechanism: only weaker attacks tried)" in verdict.headline
    # Nor is it said that more targets would help.
    [strict] = wt.audit(traces, mechanisms=nothing, policy={"auc": 0.51}, **small).verdicts
    assert "may be as high as" in strict.reasons[1]
    assert not any("would decide" in one for one in strict.reasons)


def test_it_can_be_rejected(traces):
    found = wt.audit(
        traces, mechanisms=own(lambda c, m, rng: c, name="same"), policy={"auc": 0.55}, **SMALL
    )
    assert found.verdicts[0].decision == "reject"
    assert any("function of your own" in one for one in found.verdicts[0].reasons)


def test_a_plan_says_beforehand_that_it_cannot_accept(traces):
    plan = make_plan(AuditOptions.of(mechanisms=MINE, group_size=M), traces)
    found = prospects(plan, plan.settings[0], Policy.default())
    assert found.accept == 0
    assert any("mechanism of your own is never accepted" in one for one in found.why_not)


def test_terminal_and_report_say_it(result, run, capsys, monkeypatch):
    page = (run / "report.html").read_text()
    monkeypatch.setattr("sys.argv", ["whosthere", "inspect", str(run)])
    with pytest.raises(SystemExit):
        main()
    for text in (page, " ".join(capsys.readouterr().out.split())):
        assert "own mechanism: only weaker attacks tried" in text
        assert "It is never accepted: only attacks weaker than likelihood-ratio" in text
    assert "shift | suppress" in page


def test_the_code_is_part_of_the_identity_of_a_run_folder(traces, run, result):
    changed = own(lambda counts, m, rng: counts, name="shift", then="suppress(k=1)")
    with pytest.raises(FileError, match=r"by another plan \(code"):
        wt.audit(traces, mechanisms=[changed, "raw"], out=run, **SMALL)
    resumed = wt.audit(traces, mechanisms=[MINE, "raw"], out=run, **SMALL)
    assert resumed.scores.equals(result.scores)


def test_a_function_with_random_numbers_of_its_own_fails_the_control(traces, tmp_path):
    unsteady = np.random.default_rng(1)

    def careless(counts, m, rng):
        return np.minimum(counts + unsteady.integers(2, size=counts.shape), m)

    traces.save(tmp_path / "t.parquet")
    options = AuditOptions.of(
        mechanisms=own(careless), group_size=M, attacks=QUICK, targets=2, releases=2
    )
    plan = make_plan(options, traces)
    rows = score_task(Population.of(traces), plan, plan.tasks[0]).targets
    assert set(rows["fault"].drop_nulls()) == {
        "the published counts do not follow from the true ones"
    }
    with pytest.raises(InputError, match="other scores when the first task was done again"):
        prepare_audit(tmp_path / "t.parquet", options, tmp_path / "run").run()


def test_what_a_worker_sends_back_is_what_was_sent(traces):
    """A function is sent by its code, and comes back as another object."""
    mine = own(lambda counts, m, rng: counts, name="mine")
    plan = make_plan(AuditOptions.of(mechanisms=[mine, "raw"], group_size=M), traces)
    returned = cloudpickle.loads(cloudpickle.dumps(plan.tasks))
    assert returned[0].scheme.mechanisms[0].steps[0].function is not mine.steps[0].function
    assert returned == plan.tasks
    assert [plan.schemes.index(task.scheme) for task in returned[:2]] == [0, 1]
    assert returned[0].scheme.key == plan.tasks[0].scheme.key
