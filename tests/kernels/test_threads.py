"""Ranges of work in threads: all of it, once, in order, and alone where asked for."""

import threading

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from whosthere.kernels import threads


@pytest.mark.parametrize("n", [0, 1, 2, 3, 10, 101])
@pytest.mark.parametrize("processors", [1, 2, 7])
def test_ranges_make_up_the_whole(monkeypatch, n, processors):
    monkeypatch.setattr(threads, "usable_processors", lambda: processors)
    done = threads.in_parts(lambda first, stop: list(range(first, stop)), n)
    assert [i for part in done for i in part] == list(range(n))
    assert len(done) <= processors


def test_threads_are_used_unless_there_is_to_be_one(monkeypatch):
    monkeypatch.setattr(threads, "usable_processors", lambda: 3)
    both = threading.Barrier(3, timeout=3600)
    assert len(threads.in_parts(lambda *_: both.wait(), 3)) == 3
    with threads.one_thread():
        assert threads.in_parts(lambda *ends: ends, 3) == [(0, 3)]
    assert len(threads.in_parts(lambda *ends: ends, 3)) == 3


def test_libraries_keep_to_one_thread_too():
    with threadpool_limits(2), threads.one_thread():
        assert {library["num_threads"] for library in threadpool_info()} == {1}


def test_an_error_in_a_thread_is_raised(monkeypatch):
    monkeypatch.setattr(threads, "usable_processors", lambda: 2)

    def fails(first: int, _: int) -> None:
        if first:
            raise ValueError("in the second range")

    with pytest.raises(ValueError, match="second range"):
        threads.in_parts(fails, 4)
