"""Where lanes go. A sink takes a lane's rows of one micro-batch and its id; the same id again replaces the rows.

A string is a folder of Parquet files; a callable `(DataFrame, batch id)` is the user's own sink.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from pyspark.sql import DataFrame

from latecomer.errors import InputError, must


class Sink(Protocol):
    """Takes one lane."""

    def __call__(self, rows: DataFrame, batch: int) -> object:
        """Write the rows of a batch; called again with the same batch, replace them."""


@dataclass(frozen=True)
class Files:
    """A folder of files, which `lc.read` reads; Spark's own reader gives the rows too, with a column `batch`."""

    path: str
    format: str = "parquet"


@dataclass(frozen=True)
class Discard:
    """Count the rows and let them go: for benchmarks, or a lane one has decided not to keep."""

    def __call__(self, rows: DataFrame, batch: int) -> None:
        rows.write.mode("overwrite").format("noop").save()


SinkLike = str | os.PathLike[str] | Files | Sink | Callable[[DataFrame, int], object]
Target = Files | Callable[[DataFrame, int], object]


def as_sink(value: SinkLike, where: str) -> Target:
    """A folder's name, files or a callable, as a sink."""
    if isinstance(value, str | os.PathLike):
        return Files(folder_of(value, where))
    if isinstance(value, Files):
        return replace(value, path=folder_of(value.path, where))
    if callable(value) and _takes_two(value):
        return value
    raise InputError(must(where, "be a folder or a callable (DataFrame, batch id)", value, "give a path"))


def folder_of(value: object, where: str) -> str:
    """A folder's path as text, which names one: Spark writes to a path as it is, and reads some as patterns."""
    path = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(path, str) or not path.strip():
        raise InputError(must(where, "be a folder", value, "give its path as text"))
    found = sorted(set(path) & set("*?[]{}\\"))
    if found:
        advice = f"choose another name: where Spark reads, {' '.join(found)} in a path stand for others"
        raise InputError(must(where, "name one folder", path, advice))
    return path


def _takes_two(function: Callable[..., object]) -> bool:
    """Whether it can be called with rows and a batch; what Python does not know of is tried."""
    try:
        inspect.signature(function).bind(None, 0)
    except TypeError:
        return False
    except ValueError:
        return True
    return True
