"""Which mechanisms can have made published counts, and how much is looked at to tell."""

import numpy as np

from whosthere.privacy import possible
from whosthere.privacy.mechanism import RAW, Mechanism
from whosthere.privacy.possible import fitting, impossible


def test_a_rule_is_given_up_at_its_first_impossible_counts(monkeypatch):
    """However many there are: no more is asked of a rule for more of them."""
    asked, law = [], Mechanism.log_pmf

    def count(self, published, true, m):
        found = law(self, published, true, m)
        asked.append(found.size)
        return found

    monkeypatch.setattr(Mechanism, "log_pmf", count)
    sizes = []
    for n in (2_000, 4_000):
        asked.clear()
        assert fitting(np.arange(n, dtype=np.int32), 10**6)[0] == RAW
        sizes.append(sum(asked))
    assert sizes[1] - sizes[0] < 100_000


def test_all_impossible_counts_are_found_however_many_are_looked_at_at_once(monkeypatch):
    values, mechanism = np.arange(-7, 400, dtype=np.int32), Mechanism.parse("opensafely")
    found = impossible(values, mechanism, 390)
    assert found.tolist() == [one for one in range(391) if one % 5 or one == 5]
    monkeypatch.setattr(possible, "_AT_ONCE", 3)
    assert np.array_equal(impossible(values, mechanism, 390), found)
