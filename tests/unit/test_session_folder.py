"""Temporary folders that killed sessions leave behind."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from latecomer.spark import session_folder
from latecomer.spark.session_folder import LOG, PREFIX, remove_left_behind

PROGRAM = """
import os, pathlib, signal, tempfile
tempfile.tempdir = {folder!r}
from latecomer.spark.session_folder import new_folder
made = new_folder()
(made / "spark.log").write_text("the last words")
(made / "local").mkdir()
(made / "local" / "block").write_text("large")
print(made, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_next_session_removes_what_a_killed_one_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = subprocess.run([sys.executable, "-c", PROGRAM.format(folder=str(tmp_path))], capture_output=True, text=True)
    left = Path(run.stdout.strip())
    assert (left / "local" / "block").exists()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    mine = session_folder.new_folder()
    (mine / "local").mkdir()
    assert [path.name for path in left.iterdir() if path.name != "in-use"] == [LOG], "the log can still be looked at"
    os.utime(left / LOG, (0, 0))
    session_folder.new_folder()
    assert not left.exists()
    assert (mine / "local").exists(), "of a process that lives"


def test_folders_that_are_not_ours_are_left_alone(tmp_path: Path) -> None:
    for name in ("latecomer-else", f"{PREFIX}without-a-lock"):
        (tmp_path / name).mkdir()
    remove_left_behind(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["latecomer-else", f"{PREFIX}without-a-lock"]
