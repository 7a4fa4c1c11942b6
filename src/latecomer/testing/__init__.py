"""For tests: of your own strategies (`check_machine`), with streams and a clock that are in your hands."""

from latecomer.testing.machine_runs import Run, run_machine
from latecomer.testing.machines import check_machine
from latecomer.testing.streams import LAYOUT, ManualClock, Stream, random_stream

__all__ = ["LAYOUT", "ManualClock", "Run", "Stream", "check_machine", "random_stream", "run_machine"]
