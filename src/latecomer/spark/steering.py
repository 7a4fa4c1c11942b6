"""A query that is steered: after each micro-batch its counters are looked at and control values written.

It happens on the driver, in `foreachBatch`, so it works over Connect too. What is decided after micro-batch n is read
by the control source for a later one, stands in Spark's offset log, and is the same when that batch is repeated.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass

from latecomer.contract import Steering
from latecomer.control_file import Values, read_values, write_values
from latecomer.controls import stage_control
from latecomer.errors import LatecomerError, LatecomerWarning


@dataclass(frozen=True)
class Steered:
    """What steers a query: its stages in their order, and the file of its control values."""

    steering: Steering
    stages: tuple[str, ...]
    file: str

    @property
    def names(self) -> tuple[str, ...]:
        """The counters to be looked at."""
        return tuple(self._name(stage, name) for stage, own in self.steering.counters.items() for name in own)

    def after(self, counts: Mapping[str, int]) -> None:
        """Decide when a micro-batch has been written."""
        seen = {
            stage: {name: counts[self._name(stage, name)] for name in own}
            for stage, own in self.steering.counters.items()
        }
        decided = self.steering.decide(seen, time.time_ns() // 1_000)
        values = {
            stage_control(self.stages.index(stage), name): value
            for stage, own in decided.items()
            for name, value in own.items()
        }
        if values:
            self._write(values)

    def _write(self, values: Values) -> None:
        """Write new values; where that fails, the query goes on with the old ones."""
        try:
            _, known = read_values(self.file)
            write_values(self.file, {**known, **values})
        except (OSError, LatecomerError) as error:
            text = f"control values could not be written, so the query goes on with those in force: {error}"
            warnings.warn(text, LatecomerWarning, stacklevel=2)

    def _name(self, stage: str, name: str) -> str:
        return f"{stage}.{name}" if len(self.stages) > 1 else name
