"""The command line: `latecomer demo`, `generate`, `profile`, and what other packages add to it."""

from __future__ import annotations

import sys

from latecomer.extras import MissingExtraError, needed_for

__all__ = ["main"]


def main() -> None:
    """Run the command line, or say which extra it needs."""
    try:
        with needed_for("the command latecomer"):
            from latecomer.cli.main import main as run
    except MissingExtraError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    run()
