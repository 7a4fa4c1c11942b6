"""One huge micro-batch: what a stream meets that was down for a while and has no limit per trigger."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import latecomer as lc
from latecomer.report.shape import Report, Target
from latecomer.spark.counters import unaccounted
from latecomer_lab.files import scratch
from latecomer_lab.operator import SCHEMA, OperatorBench, write_files


@dataclass(frozen=True)
class BacklogBench:
    """Sizes of the run."""

    rows: int = 50_000_000
    seed: int = 0


def run(settings: BacklogBench, tell: Callable[[str], None]) -> Report:
    """Hold all rows of one micro-batch and account for every one."""
    files = 8
    size = settings.rows // files
    with scratch() as folder:
        tell("writing rows")
        events = write_files(Path(folder), OperatorBench(size * files, size, seed=settings.seed), shards=1)
        spark = lc.session()
        tell("one micro-batch")
        stream = spark.readStream.schema(SCHEMA).parquet(str(events))
        result = lc.disordered(stream, time="ts", key="key", shards=2).reorder("1 minute")
        sinks = dict.fromkeys(("results", "late", "quarantine"), lc.Discard())
        started = time.monotonic()
        query = result.start(checkpoint=f"{folder}/checkpoint", sinks=sinks, available_now=True)
        query.awaitTermination()
        seconds = time.monotonic() - started
        batches = [counters for progress in query.recentProgress if (counters := lc.read_counters(progress))]
    return _report(settings, batches, seconds)


def _report(settings: BacklogBench, batches: list[dict[str, int]], seconds: float) -> Report:
    counters = batches[0]
    report = Report("backlog", asdict(settings))
    rows = {name: counters[name] for name in ("seen", "given", "held", "late")}
    report.results = [{"batches": len(batches), **rows, "seconds": round(seconds, 1)}]
    missing = unaccounted(counters) + counters["seen"] - counters["given"] - counters["held"] - counters["late"]
    report.targets = [Target("rows without a door", float(abs(missing)), 0.0, at_least=False)]
    return report
