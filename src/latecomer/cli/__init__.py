"""The command line: `latecomer demo`, `generate`, `profile`, and what other packages add to it."""

from latecomer.cli.main import main

__all__ = ["main"]
