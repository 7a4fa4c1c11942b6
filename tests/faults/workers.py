"""A Python for Spark's workers that does not see the package, unless it is sent to them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.faults.turns import connect_port

HIDE = """
import os, sys
sys.path[:] = [place for place in sys.path if not os.path.isdir(os.path.join(place, "latecomer"))]
sys.path.append({old!r})
"""


def run_without_package(program: str, folder: Path) -> list[str]:
    """Run a program whose workers lack the package, with a folder to work in; gives its lines.

    Workers import what the program puts into `old` in that folder.
    """
    hidden, old, python = folder / "hidden", folder / "old", folder / "python"
    hidden.mkdir()
    old.mkdir()
    (hidden / "sitecustomize.py").write_text(HIDE.format(old=str(old)))
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{hidden}:$PYTHONPATH" exec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    environment = {
        "PYSPARK_PYTHON": str(python),
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    command = [sys.executable, "-c", program, str(folder)]
    with connect_port():
        done = subprocess.run(
            command,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    assert done.returncode == 0, done.stderr[-4_000:]
    return done.stdout.strip().splitlines()
