"""A real stream through the profile: the example's figures are those of an independent count."""

import runpy
from pathlib import Path

import pyarrow.parquet as pq

import latecomer as lc

EXAMPLE = Path(__file__).parents[2] / "examples" / "profile_flights.py"


def test_the_flights_of_2013_have_the_disorder_they_are_known_for(tmp_path: Path) -> None:
    table = runpy.run_path(str(EXAMPLE))["flights"]()
    pq.write_table(table, tmp_path / "flights.parquet")
    found = lc.profile(tmp_path / "flights.parquet", time="departure", arrival="landing", key="tailnum")
    assert (found.events, found.keys) == (328_063, 4_037)
    assert (found.runs, found.interleaved, found.inversions) == (138_941, 23, 13_882_553)
    assert round(100 * found.late_share, 2) == 90.03
    assert found.lateness["p50"] == 92 * 60_000_000
    assert round(found.lateness["max"] / 3_600_000_000, 1) == 18.9
