"""The package by itself, without any extra: what needs none works, what needs one says which."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

import latecomer as lc
from latecomer.testing import check_machine


def sentence(ask: Callable[[], object]) -> str:
    """What is said when something that needs an extra is asked for."""
    try:
        ask()
    except ImportError as error:
        return str(error)
    raise AssertionError("this needs no extra")


check_machine(lc.Reorder("20 ms"), runs=1)
sorter = lc.ImpatienceSorter()
sorter.push(np.array([2, 6, 5, 1]))
assert sorter.punctuate(2).ts_us.tolist() == [1, 2]
assert lc.preset("synthetic", events=1_000, seed=7).table().num_rows == 1_000
for name, extra in (("disordered", "spark"), ("session", "spark"), ("to_html", "report")):
    assert f"pip install 'latecomer[{extra}]'" in sentence(partial(getattr, lc, name)), name
assert "pip install 'latecomer[cli]'" in sentence(lambda: lc.profile("events.csv", time="ts"))
command = subprocess.run([Path(sys.executable).with_name("latecomer")], capture_output=True, text=True, check=False)
assert command.returncode == 2, command
assert command.stderr.count("\n") == 1, command.stderr
assert "pip install 'latecomer[cli]'" in command.stderr, command.stderr
print("without extras: machines, sorter and presets work; Spark, pages and the command say what they need")
