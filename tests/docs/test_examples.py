"""Examples that need no Spark run here; others run with every Spark (`scripts/test-spark`)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_which_way_advises_and_compares() -> None:
    found = subprocess.run(
        [sys.executable, EXAMPLES / "which_way.py"], capture_output=True, text=True, check=True, timeout=300
    )
    assert "withWatermark('1 minute') loses 9 readings" in found.stdout
    assert "result = events.tumbling('6 hours').aggregate(lc.count()).tiers('100 ms', '2 days')" in found.stdout
    assert "100.00 %    45.8  withWatermark('1 day')" in found.stdout
