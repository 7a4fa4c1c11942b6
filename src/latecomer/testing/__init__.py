"""For tests: of your own strategies (`check_machine`), and of chains of steps without Spark (`check_chain`)."""

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

_CHAINS = {"ChainRun": "chain_runs", "check_chain": "chains", "run_chain": "chains"}  # these need the extra `spark`
__all__ = ["LAYOUT", "ManualClock", "Run", "Stream", "check_machine", "random_stream", "run_machine", *_CHAINS]


def __getattr__(name: str) -> Any:
    if name not in _CHAINS:
        raise AttributeError(f"module 'latecomer.testing' has no attribute {name!r}")
    with needed_for(f"latecomer.testing.{name}"):
        return getattr(import_module(f"latecomer.testing.{_CHAINS[name]}"), name)
