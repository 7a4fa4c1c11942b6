"""Settings of a session that several threads want otherwise for a while.

Spark copies a session's settings when a query starts; nothing smaller than the session carries them. So whoever wants a
setting holds it until it is done.

1. Threads that want the same value hold it together; one that wants another value waits until it is free.
2. What already has the wanted value is held, but not set.
3. A setting is put back when nobody holds it any more, unless somebody else has changed it meanwhile.
4. A thread may hold a setting twice with two values: the inner one is in force until it is let go.

The threads of all sessions wait for each other: two Python objects may stand for one session of Spark.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

PutBack = Callable[[], bool]


@dataclass
class _Held:
    """A value in force: by which threads, and how to put back what was there before."""

    value: str
    threads: list[int] = field(default_factory=list)
    put_back: list[PutBack] = field(default_factory=list)


_free = threading.Condition()
_held: dict[str, list[_Held]] = {}


def hold(spark: SparkSession, wanted: dict[str, str]) -> list[str]:
    """Wait until all settings can have these values, and set them; gives those that may not be read or changed."""
    me = threading.get_ident()
    with _free:
        _free.wait_for(lambda: all(_is_free(name, value, me) for name, value in wanted.items()))
        return [name for name, value in wanted.items() if not _take(spark, name, value, me)]


def let_go(names: list[str]) -> list[str]:
    """Let settings go; gives those that could not be put back."""
    me, left = threading.get_ident(), list[str]()
    with _free:
        for name in names:
            held = next(each for each in reversed(_held[name]) if me in each.threads)
            held.threads.remove(me)
            if not held.threads:
                _held[name].remove(held)
                left += [name for put_back in held.put_back if not put_back()]
        _free.notify_all()
    return left


def _is_free(name: str, value: str, me: int) -> bool:
    known = _held.get(name)
    return not known or known[-1].value == value or set(known[-1].threads) == {me}


def _take(spark: SparkSession, name: str, value: str, me: int) -> bool:
    """Set a setting, unless it is as wanted; platforms have errors of their own where that may not be."""
    try:
        old = spark.conf.get(name, None)
        if old != value:
            spark.conf.set(name, value)
    except Exception:
        return False
    known = _held.setdefault(name, [])
    if not known or known[-1].value != value:
        known.append(_Held(value))
    known[-1].threads.append(me)
    if old != value:
        known[-1].put_back.append(lambda: _restored(spark, name, value, old))
    return True


def _restored(spark: SparkSession, name: str, value: str, old: str | None) -> bool:
    try:
        if spark.conf.get(name, None) != value:
            return True  # somebody else's by now
        if old is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, old)
    except Exception:  # platforms have errors of their own for this
        return False
    return True
