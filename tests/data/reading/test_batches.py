"""Items made ahead of their use."""

import threading

import pytest

from whosthere.data.reading.batches import one_ahead


def test_all_items_come_in_order():
    assert list(one_ahead(iter(range(1, 20)))) == list(range(1, 20))
    assert list(one_ahead(iter(()))) == []


def test_the_next_item_is_made_while_one_is_used():
    made = threading.Event()

    def items():
        yield 1
        made.set()
        yield 2

    for item in one_ahead(items()):
        assert made.wait(10), f"nothing was made while {item} was used"


def test_errors_come_after_the_items_before_them():
    def items():
        yield 1
        raise ValueError("the second")

    taken = one_ahead(items())
    assert next(taken) == 1
    with pytest.raises(ValueError, match="the second"):
        next(taken)


def test_one_may_stop_early():
    closed = one_ahead(iter(range(1, 100)))
    assert next(closed) == 1
    closed.close()
