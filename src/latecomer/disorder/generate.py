"""Make disorder from a recorded data set (the poster's three steps), in a plain process.

1. Where the source is itself out of order, an event that is behind the running maximum arrives at that maximum.
2. Of the in-order events some are chosen and delayed; event times are never touched.
3. Rows leave sorted by arrival; those that arrive together keep the order of the source.

`spark/generating/` does the same with data that does not fit into memory, with the same functions row by row.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from latecomer.codec import integers
from latecomer.disorder.chance import Hashes
from latecomer.disorder.delays import Delay, Rows
from latecomer.disorder.load import Loaded, load
from latecomer.disorder.measures import lateness
from latecomer.disorder.source import Source, open_source
from latecomer.disorder.target import Found, Reach, hit
from latecomer.disorder.write import Destination, write_rows
from latecomer.errors import InputError, must
from latecomer.events import Int64s

if TYPE_CHECKING:
    from latecomer.disorder.config import ExperimentConfig, GeneratorConfig

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Experiment:
    """One experiment, ready to be made."""

    name: str
    config: ExperimentConfig
    delay: Delay

    def arrivals(self, rows: Rows, base_us: Int64s, share: float) -> Int64s:
        """When each row arrives if this share of units is delayed; `base_us` is the running maximum at its place."""
        chosen = (self.delay.chosen(rows, self.config.seed) < share) & (rows.ts_us >= base_us)
        return base_us + np.where(chosen, self.delay.delays(rows, self.config.seed), 0)


@dataclass(frozen=True)
class Outcome:
    """What was asked of an experiment and what came out."""

    name: str
    distribution: str
    asked_percent: float
    seed: int
    events: int
    late: int
    late_in_source: int
    reach: Reach
    around: tuple[int, int]
    delayed: int
    delay_mean_us: int
    delay_max_us: int
    lateness_mean_us: int
    lateness_max_us: int

    @property
    def late_percent(self) -> float:
        """The share of late events, in per cent."""
        return 100.0 * self.late / self.events

    @property
    def reachable(self) -> bool:
        """Whether the asked share was hit."""
        return self.reach is Reach.HIT

    def to_dict(self) -> dict[str, Any]:
        """As it is written."""
        return {**asdict(self), "late_percent": round(self.late_percent, 4), "reachable": self.reachable}


def prepare(config: GeneratorConfig, folder: Path, name: str) -> tuple[Source, list[Experiment]]:
    """Open the source and check every experiment before any work is done; errors name the configuration."""
    try:
        return open_source(config.source, folder), _experiments(config, folder)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None


def _experiments(config: GeneratorConfig, folder: Path) -> list[Experiment]:
    experiments = []
    for place, (name, settings) in enumerate(zip(config.names(), config.experiments, strict=True)):
        where = f"experiments[{place}]"
        delay = settings.delay(where, folder)
        if delay.needs_device and config.source.device is None:
            advice = "name the column that tells devices apart"
            raise InputError(must("source.device", f"be given for {settings.distribution}", None, advice))
        experiments.append(Experiment(name, settings, delay))
    return experiments


def hash_devices(column: pa.Array) -> Hashes:
    """A number for each device that depends on its name alone."""
    encoded = column.dictionary_encode("encode")
    digests = [hashlib.blake2b(repr(name).encode(), digest_size=8).digest() for name in encoded.dictionary.to_pylist()]
    numbers = np.array([int.from_bytes(digest, "little") for digest in digests], dtype=np.uint64)
    return numbers[integers(encoded.indices)]


def target_of(percent: float, events: int) -> int:
    """How many late events a factor means."""
    return round(percent / 100.0 * events)


def make(source: Source, experiments: list[Experiment], destination: Destination, tell: Tell) -> list[Outcome]:
    """Make every experiment of a source that fits into memory."""
    tell("reading")
    loaded = load(source, as_text=source.form is not None and destination.format == "csv")
    rows = rows_of(loaded)
    base_us = np.maximum.accumulate(loaded.ts_us)
    destination.write_quarantine(loaded.bad.table)
    outcomes = []
    for experiment in experiments:
        tell(f"{experiment.name}: looking for the share to delay")
        found = find_share(experiment, rows, base_us)
        arrival_us = experiment.arrivals(rows, base_us, found.share)
        order = np.argsort(arrival_us, kind="stable")
        tell(f"{experiment.name}: writing")
        write_rows(loaded, arrival_us, order, destination, experiment.name, source)
        outcomes.append(outcome(experiment, found, rows.ts_us, base_us, arrival_us, order))
    return outcomes


def rows_of(loaded: Loaded) -> Rows:
    """What the distributions need to know of the rows."""
    device = None if loaded.device is None else hash_devices(loaded.device)
    return Rows(loaded.number, loaded.ts_us, device, int(loaded.ts_us.min()), int(loaded.ts_us.max()))


def find_share(experiment: Experiment, rows: Rows, base_us: Int64s) -> Found:
    """The share of units to delay."""
    events = len(rows.ts_us)

    def late(share: float) -> int:
        order = np.argsort(experiment.arrivals(rows, base_us, share), kind="stable")
        return int(np.count_nonzero(lateness(rows.ts_us[order])))

    own = int(np.count_nonzero(rows.ts_us < base_us))
    return hit(late, events, target_of(experiment.config.factor, events), own)


def outcome(
    experiment: Experiment, found: Found, ts_us: Int64s, base_us: Int64s, arrival_us: Int64s, order: Int64s
) -> Outcome:
    """What came out."""
    delay = arrival_us - base_us
    late_us = lateness(ts_us[order])
    sums = Sums(
        delayed=int(np.count_nonzero(delay)),
        delay_us=int(delay.sum()),
        delay_max_us=int(delay.max()),
        late=int(np.count_nonzero(late_us)),
        lateness_us=int(late_us.sum(dtype=object)),
        lateness_max_us=int(late_us.max()),
    )
    return summarise(experiment, found, len(ts_us), int(np.count_nonzero(ts_us < base_us)), sums)


@dataclass(frozen=True)
class Sums:
    """Totals over all rows."""

    delayed: int
    delay_us: int
    delay_max_us: int
    late: int
    lateness_us: int
    lateness_max_us: int


def summarise(experiment: Experiment, found: Found, events: int, own: int, sums: Sums) -> Outcome:
    """Totals as an outcome."""
    return Outcome(
        name=experiment.name,
        distribution=experiment.config.distribution,
        asked_percent=float(experiment.config.factor),
        seed=experiment.config.seed,
        events=events,
        late=sums.late,
        late_in_source=own,
        reach=found.reach,
        around=found.around,
        delayed=sums.delayed,
        delay_mean_us=sums.delay_us // max(1, sums.delayed),
        delay_max_us=sums.delay_max_us,
        lateness_mean_us=sums.lateness_us // max(1, sums.late),
        lateness_max_us=sums.lateness_max_us,
    )
