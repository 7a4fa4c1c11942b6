"""For tests: of pipelines (`Scenario`), of your own strategies (`check_machine`), of chains (`check_chain`)."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from latecomer.extras import needed_for
from latecomer.testing.machine_runs import Run, run_machine
from latecomer.testing.machines import check_machine
from latecomer.testing.streams import LAYOUT, ManualClock, Stream, random_stream

if TYPE_CHECKING:
    from latecomer.testing.chain_runs import ChainRun as ChainRun
    from latecomer.testing.chains import check_chain as check_chain
    from latecomer.testing.chains import run_chain as run_chain
    from latecomer.testing.scenarios import Scenario as Scenario
    from latecomer.testing.scenarios import ScenarioRun as ScenarioRun

_CHAINS = {  # these need the extra `spark`
    "ChainRun": "chain_runs",
    "Scenario": "scenarios",
    "ScenarioRun": "scenarios",
    "check_chain": "chains",
    "run_chain": "chains",
}
__all__ = ["LAYOUT", "ManualClock", "Run", "Stream", "check_machine", "random_stream", "run_machine", *_CHAINS]


def __getattr__(name: str) -> Any:
    if name not in _CHAINS:
        raise AttributeError(f"module 'latecomer.testing' has no attribute {name!r}")
    with needed_for(f"latecomer.testing.{name}"):
        return getattr(import_module(f"latecomer.testing.{_CHAINS[name]}"), name)
