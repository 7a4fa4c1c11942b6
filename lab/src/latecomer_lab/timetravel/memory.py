"""The most memory that this process and all it started had together, sampled while something runs (Linux)."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_EVERY_S = 2.0  # to add up the pages of a JVM takes it some milliseconds
_PROC = Path("/proc")


@dataclass
class Peak:
    """The largest sum so far, in megabytes."""

    megabytes: float = 0.0


@contextmanager
def peak_memory() -> Iterator[Peak]:
    """Sample until the block ends; pages that processes share are divided among them."""
    peak, stopped = Peak(), threading.Event()

    def sample() -> None:
        while True:
            peak.megabytes = max(peak.megabytes, tree_megabytes(os.getpid()))
            if stopped.wait(_EVERY_S):
                return

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        stopped.set()
        thread.join()


def tree_megabytes(root: int) -> float:
    """What a process and all below it have in memory now."""
    below: dict[int, list[int]] = {}
    for process in filter(str.isdigit, os.listdir(_PROC)):
        parent = _number(_PROC / process / "status", "PPid:")
        below.setdefault(parent, []).append(int(process))
    waiting, kilobytes = [root], 0
    while waiting:
        process_id = waiting.pop()
        kilobytes += _number(_PROC / str(process_id) / "smaps_rollup", "Pss:")
        waiting += below.get(process_id, [])
    return kilobytes / 1_024


def _number(path: Path, name: str) -> int:
    """The number after a name in a file of a process; 0 if that has ended."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith(name)), 0)
