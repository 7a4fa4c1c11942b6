"""The command line: `latecomer demo`, `latecomer bench ...`."""

from latecomer.cli.main import main

__all__ = ["main"]
