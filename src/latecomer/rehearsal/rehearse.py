"""Run a way in this process, with the micro-batches that it would have on Spark."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from latecomer.gives import CHANGES, RESULTS
from latecomer.rehearsal.watermark import watermark_results
from latecomer.spark.comparing import Asked, Compared, Comparison, Judge, Way, ask
from latecomer.testing.chain_runs import Spread, run_rows
from latecomer.testing.declared_rows import DeclaredRows, Roled


def rehearse(asked: Asked, ways: Sequence[Way], tell: Callable[[str, int], None]) -> Comparison:
    """Run every way, one after the other; nothing is said of speed."""
    judge, found = Judge(asked, ways), Comparison(asked, on_spark=False)
    for way in ways:
        tell(way.text, len(ways))
        found.ways.append(_rehearsed(judge, way, asked))
    return found


def _rehearsed(judge: Judge, way: Way, asked: Asked) -> Compared:
    if way.is_spark:
        given, held = watermark_results(way, asked, judge.schema)
        return judge.judge(way, given, None, held)
    stream, roles = asked.stream, asked.stream.roles
    roled: Roled = {"time": roles.time, "key": roles.key, "source": roles.source, "tick": f"{stream.tick_us} us"}
    if roles.arrival is None:
        rows = stream.rows.append_column("latecomer_tick", pa.array(stream.tick))
        declared = DeclaredRows.of(rows, {**roled, "arrival": "latecomer_tick", "tick": "1 us"})
    else:
        declared = DeclaredRows.of(stream.rows, {**roled, "arrival": roles.arrival, "max_ahead": asked.max_ahead})
    cuts = tuple(stream.cuts.tolist())  # the end of the stream is a batch of its own
    run = run_rows(lambda events: ask(way, asked, events), declared, Spread(cuts=cuts))
    view = CHANGES if CHANGES in run.query.lanes.names else RESULTS
    given = {batch: run.table(view, batch) for batch in range(len(run.packed))}
    counters = [run.query.counters.counted(packed) for packed in run.packed]
    return judge.judge(way, given, counters, max(each["held"] for each in counters))
