"""Spark Connect in local mode has one port: tests that run at the same time take turns."""

from __future__ import annotations

import fcntl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def connect_port() -> Iterator[None]:
    """Wait until no other test has the port."""
    with (Path(tempfile.gettempdir()) / "latecomer-connect.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
