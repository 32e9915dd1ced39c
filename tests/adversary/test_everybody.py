"""What an attack says of everybody: how many it expects to find, and what is written."""

import numpy as np
import polars as pl
import pytest

from whosthere.adversary.attacks import RULED_OUT
from whosthere.adversary.everybody import ScoresOfEverybody
from whosthere.data.files import read_table
from whosthere.errors import FileError


def scores_of(scores, prior=0.5, users=None):
    users = users or tuple(f"u{i}" for i in range(len(scores)))
    return ScoresOfEverybody("likelihood-ratio", 7, prior, users, np.array(scores, float))


def test_shares_follow_from_chances():
    """Ten people are in with the chance 0.9 and ninety with 0.1."""
    surely = np.log(9)
    found = scores_of([surely] * 10 + [-surely] * 90).found([0.01, 0.0123, 0.5, 1.0])
    # One in ten of them is a false alarm: 1 of 1 + 81 who are out.
    assert found[0] == (0.01, None, None, None)
    assert found[1][:2] == (0.0123, 10)
    assert found[1].right == pytest.approx(0.9)
    assert found[1].share == pytest.approx(9 / 18)
    assert found[2][1:] == pytest.approx(found[1][1:])
    assert found[3].people == 100
    assert found[3].share == pytest.approx(1)


def test_a_prior_moves_chances_as_bayes_does():
    scores = scores_of([0.0, np.log(3), RULED_OUT], prior=0.25)
    assert scores.chances == pytest.approx([0.25, 0.5, 0.0])


def test_fewer_than_five_are_not_counted():
    sure = scores_of([30.0] * 4 + [-30.0] * 50)
    assert [one.people for one in sure.found()] == [None, None]
    assert [one.people for one in scores_of([30.0] * 5 + [-30.0] * 50).found()] == [5, 5]
    assert scores_of([0.0] * 3).found()[0].people is None


def test_what_is_expected_is_what_happens_where_the_model_holds(rng):
    """Scores of people who are in with the chance that they say: of those called in, as many are.
    40 draws of 200 people, 4 standard errors."""
    right, said, alarms = [], [], []
    for _ in range(40):
        score = rng.normal(-1, 2, 200)
        inside = rng.random(200) < 1 / (1 + np.exp(-score))
        [found] = scores_of(score).found([0.2])
        called = np.argsort(-score, kind="stable")[: found.people]
        right.append(inside[called].mean())
        said.append(found.right)
        alarms.append((~inside[called]).sum() / (~inside).sum())
    error = np.subtract(right, said).std(ddof=1) / np.sqrt(40)
    assert abs(np.subtract(right, said).mean()) < 4 * error
    assert 0.15 < np.mean(alarms) < 0.25


def test_files_are_private_and_name_people_only_if_asked_to(tmp_path):
    scores = scores_of([1.0, RULED_OUT], users=("=1+1", "b"))
    scores.save(tmp_path / "scores.parquet")
    frame, about = read_table(tmp_path / "scores.parquet", kind="scores of everybody")
    assert frame.equals(scores.to_frame())
    assert (about["attack"], about["group_size"], about["prior"]) == ("likelihood-ratio", 7, 0.5)
    scores.save(tmp_path / "named.csv", with_ids=True)
    # No spreadsheet runs an id.
    assert pl.read_csv(tmp_path / "named.csv")["user"].to_list() == ["'=1+1", "b"]
    for path in tmp_path.iterdir():
        assert path.stat().st_mode & 0o777 == 0o600
        with pytest.raises(FileError, match="exists already"):
            scores.save(path)
        scores.save(path, force=True)
    with pytest.raises(FileError, match="extension"):
        scores.save(tmp_path / "scores.xlsx")
    assert "=1+1" not in f"{scores!r}{scores._repr_html_()}{scores.to_json()}"
