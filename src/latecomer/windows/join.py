"""Pairs of rows of two sources that are near to each other in time, per key.

A pair is given when the second of its rows is read. Rows may be read out of order: what is kept, and for how long,
decides which pairs are found then.

Invariants
1. A row that is read meets every row of its key and of the other source that was read before it, is at most `within`
   away, and is still there. So no pair comes twice, and of rows read in order, all pairs come.
2. Without `keep`, a row is there as long as it is not older than `within` before the latest time that was read of its
   key; with `keep`, however far its key has read on. In both cases rows leave at the end of a push when all rows within
   reach of them have certainly been read; with `keep`, also when `keep` has been read beyond them. A row that comes
   when those of its time have left meets what is there, and is met by none.
3. Results do not depend on how the rows of a stretch in order are cut into pushes, but for what leaves in between.

Paper: Slack-ScaleGate, the join of its application.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from latecomer.chunks import Store
from latecomer.durations import Duration, duration_us
from latecomer.errors import InputError, must
from latecomer.events import CARRIED_PREFIX, NEVER_US, TICK, TICK_FIELD, Int64s, Layout
from latecomer.gives import Tally
from latecomer.windows.checks import scalar_of
from latecomer.windows.join_candidates import LEFT, RIGHT
from latecomer.windows.join_pairs import PairColumns, Predicate
from latecomer.windows.join_push import COMPARISONS, CUT_SHORT, Joining
from latecomer.windows.operators import Clocks, Operator, Running, check_function

Source = str | int


@dataclass(frozen=True)
class Join(Operator):
    """Pairs of rows of the sources `left` and `right`, of one key, at most `within` apart.

    when: the user's function from a RecordBatch of pairs to a boolean for each; without it all pairs are results.
    keep: how long rows stay for partners that are read out of order, at least `within`; without it, a key's own reads
    evict them. columns: of each source those that it has, the others are left out of results; without it, all.

    Results have the columns of the key, the later time of the two, and those of each source with its name before them.
    Counters: `comparisons`, the pairs that were tried; `cut_short`, rows that were read when partners of theirs may
    have left already.
    """

    left: Source
    right: Source
    within: Duration
    when: Predicate | None = None
    keep: Duration | None = None
    columns: Mapping[Source, tuple[str, ...]] | None = None

    def __post_init__(self) -> None:
        for name, value in zip(("left", "right"), self.sources, strict=True):
            if not isinstance(value, str | int) or isinstance(value, bool):
                advice = "a value of the source column, e.g. 'bus'"
                raise InputError(must(f"{name} of join", "name a source", value, advice))
        if self.left == self.right:
            advice = "name another source; a join of a source with itself is not there yet"
            raise InputError(must("join", "have two different sources", self.right, advice))
        if self.when is not None:
            check_function(self.when, "when of join")
        within_us = self.within_us
        if self.keep_us is not None and self.keep_us < within_us:
            advice = "make it longer, or leave it out"
            raise InputError(must("keep of join", f"be at least within ({self.within})", self.keep, advice))

    @property
    def sources(self) -> tuple[Source, Source]:
        """The sources whose rows it takes; others are not for it."""
        return self.left, self.right

    @property
    def within_us(self) -> int:
        """How far apart the rows of a pair may be."""
        return duration_us(self.within, "within of join")

    @property
    def keep_us(self) -> int | None:
        """How long rows stay at most."""
        return None if self.keep is None else duration_us(self.keep, "keep of join")

    @property
    def gives_in_order(self) -> bool:
        return False

    @property
    def in_part(self) -> bool:
        return True

    @property
    def reach_us(self) -> int:
        return self.within_us

    @property
    def counters(self) -> Mapping[str, Tally]:
        return {COMPARISONS: Tally.SUM, CUT_SHORT: Tally.SUM}

    def build(self, store: Store, layout: Layout) -> Running:
        return Joining(self, store, layout)

    def output(self, columns: pa.Schema, layout: Layout) -> pa.Schema:
        self._source_scalars(columns, layout)
        pairs = self.pair_columns(columns, layout).schema(columns)
        return pairs.append(TICK_FIELD) if TICK in columns.names else pairs

    def layout_after(self, layout: Layout) -> Layout:
        return Layout(layout.time, layout.key)

    def takes_from(self, read_us: int) -> int:
        """It takes every row: what it can still find depends on what is kept."""
        return NEVER_US

    def gone(self, clocks: Clocks) -> int:
        """Rows up to this time leave when the clocks have come so far."""
        gone_us = clocks.certain_us - self.within_us
        return gone_us if self.keep_us is None else max(gone_us, clocks.read_us - self.keep_us)

    def most_held(self, ts_us: Int64s, punctuation_us: int) -> int:
        """With `keep`, rows since then; without it rows stay until it is certain that all have come, however long."""
        return len(ts_us) if self.keep_us is None else int((ts_us > punctuation_us - self.keep_us).sum())

    def shown(self) -> str:
        kept = "" if self.keep is None else f", kept for {self.keep}"
        when = "" if self.when is None else f" when {self._when_name}"
        return f"{self.left} with {self.right} within {self.within}{when}{kept}"

    def describe(self) -> dict[str, Any]:
        return {
            "operator": "join",
            "sources": list(self.sources),
            "within_us": self.within_us,
            "keep_us": self.keep_us,
            "when": self._when_name,
        }

    def pair_columns(self, columns: pa.Schema, layout: Layout) -> PairColumns:
        """The columns of pairs of rows with these; refuses names that two columns of results would have."""
        left, right = (self._named(source, columns, layout) for source in self.sources)
        pairs = PairColumns(layout.key, layout.time, (left, right))
        names = [name.lower() for name in pairs.names]
        for name in pairs.names:
            if names.count(name.lower()) > 1:
                advice = "rename a column, or a source"
                raise InputError(must("results of join", "have different names", name, advice))
        return pairs

    def sides(self, rows: pa.RecordBatch, layout: Layout) -> Int64s:
        """Of each row, whether it is of the left or the right source."""
        left, right = self._source_scalars(rows.schema, layout)
        column = rows.column(layout.source)
        is_left, is_right = (pc.fill_null(pc.equal(column, each), False) for each in (left, right))
        strange = pc.invert(pc.or_(is_left, is_right))
        if pc.any(strange).as_py():
            got = column.filter(strange)[0].as_py()
            rule = f"be of the sources {self.left!r} and {self.right!r}"
            raise InputError(must("rows of join", rule, got, "filter the others before"))
        return np.where(is_left.to_numpy(zero_copy_only=False), LEFT, RIGHT)

    def _source_scalars(self, columns: pa.Schema, layout: Layout) -> list[pa.Scalar]:
        if layout.source is None or layout.source not in columns.names:
            advice = "give source= to lc.disordered, and select that column"
            raise InputError(must("join", "know the source of each row", "no column of sources", advice))
        kind = columns.field(layout.source).type
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        return [scalar_of(source, kind, "source of join") for source in self.sources]

    def _named(self, source: Source, columns: pa.Schema, layout: Layout) -> dict[str, str]:
        """The columns of a source, and their names in results."""
        users = [name for name in columns.names if not name.startswith(CARRIED_PREFIX) and name not in layout.key]
        own = users if self.columns is None else self.columns.get(source, users)
        for name in own:
            if name not in columns.names:
                rule = f"be among {', '.join(columns.names)}"
                raise InputError(must(f"columns of {source}", rule, name, "check the name"))
        return {name: f"{source}_{name}" for name in users if name in own}

    @property
    def _when_name(self) -> str | None:
        return None if self.when is None else getattr(self.when, "__name__", type(self.when).__name__)
