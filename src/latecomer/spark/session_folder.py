"""The temporary folder of a session: its log, its sockets, Spark's own files.

A process holds a lock on its folder as long as it lives, and the system lets go of it however the process ends. So a
folder whose lock is free was left behind. The next session removes it; the log stays for a day, to be looked at.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from pathlib import Path

PREFIX, LOG, _LOCK = "latecomer-session-", "spark.log", "in-use"
_LOG_KEPT_S = 24 * 60 * 60
_locks: list[int] = []  # open files: to forget one would let go of its lock


def new_folder() -> Path:
    """A folder for this process, after what killed ones left is removed."""
    remove_left_behind(Path(tempfile.gettempdir()))
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    lock = _locked(folder, create=True)
    if lock is not None:
        _locks.append(lock)
    return folder


def remove_left_behind(parent: Path) -> None:
    """Remove the folders of processes that are gone; what may not be removed stays."""
    for folder in parent.glob(f"{PREFIX}*"):
        lock = _locked(folder, create=False)
        if lock is not None:
            try:
                _remove(folder)
            finally:
                os.close(lock)


def _locked(folder: Path, *, create: bool) -> int | None:
    """The lock of a folder, None where another process has it, or where there is none that we may open."""
    try:
        file = os.open(folder / _LOCK, os.O_RDWR | (os.O_CREAT if create else 0), 0o600)
    except OSError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(file)
        return None
    return file


def _remove(folder: Path) -> None:
    log = folder / LOG
    with contextlib.suppress(OSError):
        if not log.exists() or time.time() - log.stat().st_mtime > _LOG_KEPT_S:
            shutil.rmtree(folder, ignore_errors=True)
            return
        for each in folder.iterdir():
            if each.is_dir() and not each.is_symlink():
                shutil.rmtree(each, ignore_errors=True)
            elif each.name not in (LOG, _LOCK):
                each.unlink(missing_ok=True)
