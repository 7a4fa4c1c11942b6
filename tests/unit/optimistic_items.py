"""Events, items and folds with which the slow twin of optimistic processing is tried."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.naive_optimistic import Event, Fold, Item

LONG = 10**6


def at(ts_us: int, payload: Any, key: Any = "k", *, source: int = 0, order: int = 0, tick: int = 0) -> Event:
    """An event without an arrival stamp: it joins the first open tick, so that a micro-batch is one tick."""
    return Event(ts_us, source, tick, order, key, payload)


def void(event: Event) -> Event:
    """The retraction of an event."""
    return event._replace(change=-1)


def item(ts_us: int, payload: Any, key: Any = "k", children: Sequence[int] = ()) -> Item:
    """An item that stands alone at its time."""
    return Item((ts_us, 0, 0, 0, 0, *children), key, payload)


def said(items: Sequence[Item]) -> list[Any]:
    """What items say, in their order."""
    return [each.payload for each in items]


def dated(items: Sequence[Item]) -> list[tuple[int, Any]]:
    """When items are, and what they say."""
    return [(each.ts_us, each.payload) for each in items]


def total(state: int, payload: int) -> tuple[int, list[int]]:
    """A running sum."""
    return state + payload, [state + payload]


def highest(state: int, payload: int) -> tuple[int, list[int]]:
    """A running maximum."""
    return max(state, payload), [max(state, payload)]


def previous(state: Any, payload: Any) -> tuple[Any, list[Any]]:
    """The value before, with each value."""
    return payload, [(state, payload)]


def withdraw(balance: int, amount: int) -> tuple[int, list[int]]:
    """A balance that may not fall below zero."""
    if balance + amount < 0:
        raise ValueError(f"{balance} and {amount}")
    return balance + amount, [balance + amount]


SUM, MAX, LAG, BALANCE = Fold(total, 0), Fold(highest, 0), Fold(previous), Fold(withdraw, 0)


def even_or_odd(numbers: Sequence[int]) -> list[Item]:
    """Natural numbers, of which each is its own time, by their last bit (section V-B)."""
    return [item(number, number, number % 2) for number in numbers]


EVEN_ODD = [(1,), (2,), (1, 3), (2, 4), (1, 3, 5), (2, 4, 6), (3, 5, 7), (4, 6, 8)]
