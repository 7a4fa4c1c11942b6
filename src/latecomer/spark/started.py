"""The query that `start` gives: Spark's own, whose failure is one sentence of ours with Spark's error as its cause."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery

from latecomer.spark.failures import in_one_sentence, sentence

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery as Sparks
else:
    Sparks = object

_kinds: dict[type[Any], type[Any]] = {}


class _Started(Sparks):
    """What is said differently; everything else is Spark's, classic or over Connect."""

    def awaitTermination(self, timeout: int | None = None) -> bool | None:
        with in_one_sentence():
            return super().awaitTermination(timeout)

    def processAllAvailable(self) -> None:
        with in_one_sentence():
            super().processAllAvailable()

    def exception(self) -> StreamingQueryException | None:
        found = super().exception()
        return None if found is None else cast("StreamingQueryException", sentence(found))


def started(query: StreamingQuery) -> StreamingQuery:
    """The same query, with errors in our words."""
    sparks = type(query)
    if sparks not in _kinds:
        told = {"__module__": sparks.__module__, "__doc__": sparks.__doc__}
        _kinds[sparks] = type(sparks.__name__, (_Started, sparks), told)
    query.__class__ = _kinds[sparks]
    return query
