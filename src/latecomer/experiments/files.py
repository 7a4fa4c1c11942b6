"""Folders for streams, and input files that must be read in a known order."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path


def scratch(prefix: str = "latecomer-bench-") -> tempfile.TemporaryDirectory[str]:
    """A folder for a while. Spark may still write a snapshot of a query that is over while it is removed."""
    return tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True)


def take_in_turn(folder: Path) -> None:
    """Let Spark's file source take a folder's files by name.

    It takes them by age, in milliseconds: files written in one go may be of one age and come in any order. Files are
    made a second apart, the last one now; later files are younger than all of them.
    """
    paths = sorted(folder.glob("*.parquet"))
    for place, path in enumerate(reversed(paths)):
        moment = time.time() - place
        os.utime(path, (moment, moment))
