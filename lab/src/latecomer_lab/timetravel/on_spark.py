"""`latecomer reproduce timetravel --spark`: the bench with a day a micro-batch, and the whole stream once.

The whole run is measured from its first micro-batch to its last, with the memory of driver, JVM and workers together;
beside it an identity `mapInArrow` of the same files.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession

import latecomer as lc
from latecomer.disorder.presets.meters import Meters
from latecomer.report.shape import Target
from latecomer_lab.files import scratch
from latecomer_lab.operator import batch_seconds, discard
from latecomer_lab.timetravel import bench, paths
from latecomer_lab.timetravel.memory import peak_memory

if TYPE_CHECKING:
    from latecomer_lab.timetravel.experiments import TimeTravelExperiments

MOST_MEGABYTES = 8 * 1_024

Tell = Callable[[str], None]


@dataclass(frozen=True)
class OnSpark:
    """Rows and targets."""

    rows: list[dict[str, Any]]
    targets: list[Target]


def run(settings: TimeTravelExperiments, tell: Tell) -> OnSpark:
    """Compare with the fewest meters, then run the most."""
    few, many = settings.meters[0], settings.meters[-1]
    compared = bench.run(bench.TimeTravelBench(few, settings.days, 1, rounds=1, warm=1, seed=settings.seed), tell)
    rows = [{"figure": "5a", "on": "spark", "meters": few, **row} for row in compared.results]
    whole, megabytes = run_whole(Meters(many, settings.days, settings.seed), tell)
    memory = Target(f"{many:,} meters on Spark: peak memory, MB", round(megabytes), MOST_MEGABYTES, at_least=False)
    return OnSpark([*rows, whole], [*compared.targets, memory])


def run_whole(meters: Meters, tell: Tell) -> tuple[dict[str, Any], float]:
    """The whole stream by time travel, a day a micro-batch, and by an identity; the most memory of the first."""
    with scratch() as name:
        folder, spark = Path(name), lc.session()
        tell(f"{meters.meters:,} meters: making readings")
        files, readings = paths.write_days(meters, folder / "readings", 1)
        tell(f"{meters.meters:,} meters: time travel on Spark")
        with peak_memory() as peak:
            ours_s = _whole_seconds(spark, files, f"{folder}/ours")
        tell(f"{meters.meters:,} meters: identity on Spark")
        query = paths.start_light(paths.read_stream(spark, files), f"{folder}/light")
        query.awaitTermination()
        light_s = sum(batch_seconds(query))
    row = {
        "figure": "5a",
        "on": "spark",
        "meters": meters.meters,
        "path": "time travel, whole run",
        "readings": readings,
        "rows_per_s": round(readings / ours_s),
        "share_of_light": round(light_s / ours_s, 3),
        "peak_mb": round(peak.megabytes),
    }
    return row, peak.megabytes


def _whole_seconds(spark: SparkSession, files: Path, checkpoint: str) -> float:
    query = paths.time_travel(paths.read_stream(spark, files)).start(**discard(checkpoint))
    query.awaitTermination()
    return sum(batch_seconds(query))
