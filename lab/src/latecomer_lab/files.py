"""Folders that are there for a while."""

from __future__ import annotations

import tempfile


def scratch(prefix: str = "latecomer-bench-") -> tempfile.TemporaryDirectory[str]:
    """A folder for a while. Spark may still write a snapshot of a query that is over while it is removed."""
    return tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True)
