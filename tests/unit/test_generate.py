"""Making disorder in a plain process: targets, rulings, formats, bad input."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import latecomer as lc
from latecomer.disorder.measures import lateness

ROWS = 20_000


def write_csv(path: Path, times: list[int], header: bool = True, separator: str = ",") -> None:
    lines = [separator.join(("ts", "device", "value"))] if header else []
    lines += [separator.join((str(ts), f"d{place % 20}", f"{place}.5")) for place, ts in enumerate(times)]
    path.write_text("\n".join(lines) + "\n")


def config(path: Path, *experiments: dict[str, Any], unit: str = "ms", **source: Any) -> dict[str, Any]:
    time = {"field": "ts", "unit": unit}
    return {"source": {"path": str(path), "time": time, "device": "device", **source}, "experiments": list(experiments)}


def in_order() -> list[int]:
    return [1_700_000_000_000 + 10 * place for place in range(ROWS)]


def read(folder: Path) -> pa.Table:
    return pq.read_table(folder)


def micros(table: pa.Table, name: str) -> Any:
    return table[name].cast(pa.int64()).to_numpy()


DISTRIBUTIONS = [
    "uniform",
    "half-normal",
    "exponential",
    "zipf",
    "pareto",
    "constant",
    "drift",
    "batched",
    "outage",
]


def test_every_distribution_hits_its_target(tmp_path: Path) -> None:
    write_csv(tmp_path / "in.csv", in_order())
    asked = [
        {"factor": factor, "maxDelay": "30 s", "distribution": name, "name": f"{name}-{factor}", "seed": 3}
        for name in DISTRIBUTIONS
        for factor in (5, 30)
    ]
    outcomes = lc.generate(config(tmp_path / "in.csv", *asked), tmp_path / "out")
    for outcome in outcomes:
        rows = read(tmp_path / "out" / outcome.name)
        ts_us, arrival_us = micros(rows, "event_time"), micros(rows, "arrival")
        assert len(rows) == ROWS
        assert bool(np.all(np.diff(arrival_us) >= 0))
        assert sorted(rows["ts"].to_pylist()) == in_order()  # event times are never touched
        assert bool(np.all(arrival_us >= ts_us))
        assert int(np.count_nonzero(lateness(ts_us))) == outcome.late
        if outcome.distribution != "drift" or outcome.asked_percent == 5:  # few devices: drift moves in steps
            assert abs(outcome.late_percent - outcome.asked_percent) <= 0.5, outcome


def test_the_authors_example_says_what_can_be_reached(tmp_path: Path) -> None:
    """100 per cent with delays hardly longer than the distance of two events: their tool makes 34.5 per cent."""
    write_csv(tmp_path / "in.csv", in_order())
    (outcome,) = lc.generate(config(tmp_path / "in.csv", {"factor": 100, "maxDelay": 25}), tmp_path / "out")
    assert not outcome.reachable
    assert 20 < outcome.late_percent < 60


def test_the_sources_own_disorder_stays_and_counts(tmp_path: Path) -> None:
    times = in_order()
    times[5_000:5_100] = [ts - 60_000 for ts in times[5_000:5_100]]
    write_csv(tmp_path / "in.csv", times)
    asked = ({"factor": 0, "maxDelay": 1, "name": "as-is"}, {"factor": 10, "maxDelay": 2000, "name": "more"})
    as_is, more = lc.generate(config(tmp_path / "in.csv", *asked), tmp_path / "out")
    assert as_is.late == as_is.late_in_source == 100
    assert as_is.delayed == 0
    assert as_is.reachable  # half a per cent is near enough to none
    assert read(tmp_path / "out" / "as-is")["ts"].to_pylist() == times
    assert abs(more.late_percent - 10) <= 0.5
    assert more.late_in_source == 100


def test_less_than_the_sources_own_disorder_cannot_be_had(tmp_path: Path) -> None:
    times = in_order()
    times[5_000:7_000] = [ts - 60_000 for ts in times[5_000:7_000]]
    write_csv(tmp_path / "in.csv", times)
    (outcome,) = lc.generate(config(tmp_path / "in.csv", {"factor": 1, "maxDelay": 1}), tmp_path / "out")
    assert not outcome.reachable
    assert outcome.late == 2_000


def test_a_negative_seed_is_a_seed_like_others(tmp_path: Path) -> None:
    write_csv(tmp_path / "in.csv", in_order())
    asked = [
        {"factor": 20, "maxDelay": 2000, "seed": seed, "name": f"x{place}"} for place, seed in enumerate((-7, -7, 7))
    ]
    outcomes = lc.generate(config(tmp_path / "in.csv", *asked), tmp_path / "out")
    assert [outcome.seed for outcome in outcomes] == [-7, -7, 7]
    first, again, other = (read(tmp_path / "out" / outcome.name) for outcome in outcomes)
    assert first == again != other


@pytest.mark.parametrize("name", ["in.dat", "in", "in.csv"])
def test_a_separator_says_that_files_are_text_with_separators(name: str, tmp_path: Path) -> None:
    write_csv(tmp_path / name, in_order()[:500], separator=";")
    wanted = config(tmp_path / name, {"factor": 20, "maxDelay": 2000}, separator=";")
    (outcome,) = lc.generate(wanted, tmp_path / "out")
    assert outcome.events == 500
    assert lc.profile(tmp_path / name, time="ts", unit="ms", separator=";").events == 500
    del wanted["source"]["separator"]
    if name != "in.csv":
        with pytest.raises(lc.InputError, match="give the format or a separator"):
            lc.generate(wanted, tmp_path / "other")


def test_the_reachable_maximum_of_constant_delays_is_near_all(tmp_path: Path) -> None:
    write_csv(tmp_path / "in.csv", in_order())
    asked = {"factor": 100, "maxDelay": "30 s", "distribution": "constant"}
    (outcome,) = lc.generate(config(tmp_path / "in.csv", asked), tmp_path / "out")
    assert outcome.reach == "maximum"
    assert outcome.late_percent > 98.5


def test_same_seed_same_stream_other_seed_other_stream(tmp_path: Path) -> None:
    write_csv(tmp_path / "in.csv", in_order())
    asked = [
        {"factor": 20, "maxDelay": 2000, "seed": seed, "name": name} for seed, name in ((1, "a"), (1, "b"), (2, "c"))
    ]
    lc.generate(config(tmp_path / "in.csv", *asked), tmp_path / "out")
    a, b, c = (read(tmp_path / "out" / name) for name in "abc")
    assert a.equals(b)
    assert not a.equals(c)


def test_an_empirical_delay_follows_a_measured_profile(tmp_path: Path) -> None:
    write_csv(tmp_path / "in.csv", in_order())
    lc.generate(config(tmp_path / "in.csv", {"factor": 30, "maxDelay": "20 s", "name": "m"}), tmp_path / "a")
    measured = lc.profile(tmp_path / "a" / "m", time="event_time", arrival="arrival")
    measured.write(tmp_path / "p.json")
    asked = {"factor": 30, "distribution": "empirical", "profile": str(tmp_path / "p.json"), "name": "again"}
    (outcome,) = lc.generate(config(tmp_path / "in.csv", asked), tmp_path / "b")
    again = lc.profile(tmp_path / "b" / "again", time="event_time", arrival="arrival")
    assert abs(outcome.late_percent - 30) <= 0.5
    assert abs(again.lateness["p50"] / measured.lateness["p50"] - 1) < 0.1


def test_all_formats_give_the_same_stream(tmp_path: Path) -> None:
    times = in_order()[:3_000]
    write_csv(tmp_path / "in.csv", times)
    write_csv(tmp_path / "in.tsv", times, separator="\t")
    (tmp_path / "zip").mkdir()
    (tmp_path / "zip" / "in.csv.gz").write_bytes(gzip.compress((tmp_path / "in.csv").read_bytes()))
    rows = [{"ts": ts, "device": f"d{place % 20}", "value": place + 0.5} for place, ts in enumerate(times)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "in.parquet")
    (tmp_path / "in.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = {}
    for name in ("in.csv", "in.tsv", "zip", "in.parquet", "in.json"):
        out = tmp_path / f"out-{name}"
        lc.generate(config(tmp_path / name, {"factor": 20, "maxDelay": 500, "name": "x"}), out)
        found[name] = read(out / "x")
    assert found["in.csv"].equals(found["in.tsv"])
    assert found["in.csv"].equals(found["zip"])
    assert found["in.json"].equals(found["in.parquet"])
    assert found["in.csv"].schema.equals(found["in.parquet"].schema)


def test_csv_comes_out_as_it_went_in_with_two_columns_more(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text('1;"a;b";007\n3;"say ""hi""";1.50\n2;;x\n')
    source = {"path": str(tmp_path / "in.csv"), "separator": ";", "time": {"timeIndex": 0, "sourceTimeUnit": "s"}}
    asked = [{"targetOutOfOrderFactor": 0, "minDelay": 0, "maxDelay": 2000, "delaySeed": 1, "name": "x"}]
    poster = {"dataSource": source, "experimentDataConfigurations": asked}
    lc.generate(poster, tmp_path / "out", format="csv")
    lines = (tmp_path / "out" / "x" / "part-00000.csv").read_text().splitlines()
    assert lines == [
        '"c0";"c1";"c2";"event_time";"arrival"',
        '"1";"a;b";"007";1000000;1000000',
        '"3";"say ""hi""";"1.50";3000000;3000000',
        '"2";"";"x";2000000;3000000',
    ]


BAD = b'ts,a\n1,x\n2\n3,y,z\nsoon,w\n,v\n4,\xff\xfe\n5,"open\n6,good\n\n99999999999999999999,u\n1,x\n'


def test_the_first_bad_row_is_named_with_file_line_and_field(tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_bytes(BAD)
    with pytest.raises(lc.InputError, match=r"bad\.csv, line 3: must have 2 fields, not 1; 7 rows are bad"):
        lc.profile(path, time="ts")
    path.write_bytes(b"ts,a\n1,x\nsoon,w\n")
    with pytest.raises(lc.InputError, match=r"line 3, field 'ts': must be a number of us; got 'soon'; it is the only"):
        lc.profile(path, time="ts")


def test_quarantine_keeps_every_bad_row_with_its_reason(tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_bytes(BAD)
    source = {"path": str(path), "time": {"field": "ts", "unit": "ms"}, "bad_rows": "quarantine"}
    lc.generate({"source": source, "experiments": [{"factor": 0, "maxDelay": 1, "name": "x"}]}, tmp_path / "out")
    bad = pq.read_table(tmp_path / "out" / "quarantine.parquet").to_pylist()
    assert [row["line"] for row in bad] == [3, 4, 5, 6, 7, 8, 11]
    reasons = " | ".join(row["reason"] for row in bad)
    for part in ("2 fields, not 1", "2 fields, not 3", "a number of ms", "UTF-8", "one row of text", "9,000 years"):
        assert part in reasons
    assert bad[4]["text"] == "4,\\xff\\xfe"
    assert read(tmp_path / "out" / "x")["ts"].to_pylist() == [1, 6, 1]  # duplicates are kept


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "line 1 must have fields"),
        (b"ts,a\n", "must have rows"),
        (b"ts,ts\n1,2\n", "line 1 must name each column once; got 'ts'"),
        (b"\xff\xfets,a\n1,2\n", "line 1 must be UTF-8 text"),
        (b"a,b\n1,2\n", "time field must name a column; got 'ts'; the columns are a, b"),
    ],
)
def test_a_file_without_sense_is_an_error(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "in.csv").write_bytes(content)
    with pytest.raises(lc.InputError) as caught:
        lc.profile(tmp_path / "in.csv", time="ts")
    assert message in str(caught.value)


def test_one_row_is_a_stream_in_order(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("ts,device\n5,a")
    (outcome,) = lc.generate(config(tmp_path / "in.csv", {"factor": 100, "maxDelay": 10}), tmp_path / "out")
    assert (outcome.events, outcome.late, outcome.reach) == (1, 0, "maximum")
    found = lc.profile(tmp_path / "in.csv", time="ts")
    assert (found.events, found.late, found.runs, found.interleaved, found.inversions) == (1, 0, 1, 1, 0)


def test_a_truncated_gzip_file_is_an_error_not_a_short_stream(tmp_path: Path) -> None:
    write_csv(tmp_path / "in.csv", in_order())
    whole = gzip.compress((tmp_path / "in.csv").read_bytes())
    (tmp_path / "cut.csv.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(lc.InputError, match="must be readable to its end"):
        lc.profile(tmp_path / "cut.csv.gz", time="ts", unit="ms")


@pytest.mark.parametrize(
    ("unit", "text", "expected"),
    [
        ("ps", "-1", -1),
        ("ns", "1999", 1),
        ("us", " 7 ", 7),
        ("ms", "1.5", 1_500),
        ("s", "1e3", 1_000_000_000),
        ("iso", "1970-01-01T00:00:01.5+00:00", 1_500_000),
        ("iso", "1970-01-01 01:00:00+01:00", 0),
    ],
)
def test_times_are_read_in_their_unit(tmp_path: Path, unit: str, text: str, expected: int) -> None:
    (tmp_path / "in.csv").write_text(f"ts\n{text}\n")
    assert lc.profile(tmp_path / "in.csv", time="ts", unit=unit).first_ts_us == expected


def test_a_folder_that_has_something_in_it_is_not_written_to(tmp_path: Path) -> None:
    write_csv(tmp_path / "in.csv", in_order())
    with pytest.raises(lc.InputError, match="must name a new or an empty folder"):
        lc.generate(config(tmp_path / "in.csv", {"factor": 1, "maxDelay": 1}), tmp_path)
    (tmp_path / "c.csv").write_text("ts,device,arrival\n1,a,2\n")
    with pytest.raises(lc.InputError, match="must not have a column 'arrival'"):
        lc.generate(config(tmp_path / "c.csv", {"factor": 1, "maxDelay": 1}), tmp_path / "new")
    asked = {"factor": 1, "maxDelay": 1, "distribution": "batched"}
    with pytest.raises(lc.InputError, match=r"source\.device must be given for batched"):
        lc.generate(config(tmp_path / "c.csv", asked, device=None), tmp_path / "new")


def typed_column(tmp_path: Path, texts: list[str]) -> pa.ChunkedArray:
    (tmp_path / "in.csv").write_text("ts,device,x\n" + "".join(f"{n},d,{text}\n" for n, text in enumerate(texts)))
    lc.generate(config(tmp_path / "in.csv", {"factor": 0, "maxDelay": 1, "name": "x"}), tmp_path / "out")
    return read(tmp_path / "out" / "x")["x"]


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (["1", "-2", ""], pa.int64()),
        (["1700000000001234567", "9223372036854775807"], pa.int64()),
        (["9223372036854775808"], pa.string()),
        (["1700000000001234567", "1.5"], pa.string()),
        (["0.1234567890123456", "1e-3", "-.5"], pa.float64()),
        (["0.1234567890123456789"], pa.string()),
        (["007"], pa.string()),
        (["+5"], pa.string()),
        (["", ""], pa.string()),
    ],
)
def test_text_becomes_a_number_only_where_nothing_is_lost(tmp_path: Path, texts: list[str], kind: pa.DataType) -> None:
    column = typed_column(tmp_path, texts)
    assert column.type == kind
    if kind == pa.int64():
        assert column.to_pylist() == [int(text) if text else None for text in texts]
    if kind == pa.string():
        assert column.to_pylist() == texts


def test_nanoseconds_of_an_epoch_are_not_rounded_to_doubles(tmp_path: Path) -> None:
    times = [1_700_000_000_001_234_567 + place for place in range(3)]
    (tmp_path / "in.csv").write_text("ts,device\n" + "".join(f"{ts},a\n" for ts in times))
    asked = config(tmp_path / "in.csv", {"factor": 0, "maxDelay": 1, "name": "x"}, unit="ns")
    lc.generate(asked, tmp_path / "out")
    assert read(tmp_path / "out" / "x")["ts"].to_pylist() == times


def test_a_tenth_of_a_per_cent_is_made(tmp_path: Path) -> None:
    write_csv(tmp_path / "in.csv", in_order())
    (outcome,) = lc.generate(config(tmp_path / "in.csv", {"factor": 0.1, "maxDelay": 2000}), tmp_path / "out")
    assert 15 <= outcome.late <= 25


def test_units_too_coarse_for_the_factor_are_said_to_be(tmp_path: Path) -> None:
    lines = [f"{1_700_000_000_000 + 10 * place},d{place % 3}" for place in range(3_000)]
    (tmp_path / "in.csv").write_text("ts,device\n" + "\n".join(lines) + "\n")
    asked = {"factor": 15, "maxDelay": 5_000, "distribution": "drift"}
    (outcome,) = lc.generate(config(tmp_path / "in.csv", asked), tmp_path / "out")
    assert outcome.reach == "coarse"
    assert outcome.around[0] < 450 < outcome.around[1]


def test_rows_of_separators_and_stray_carriage_returns_are_not_lost(tmp_path: Path) -> None:
    (tmp_path / "in.tsv").write_bytes(b"ts\tdevice\tx\n1\ta\tb\n\t\t\n \n2\ta\tb\r\n")
    found = lc.profile(tmp_path / "in.tsv", time="ts", quarantine=True)
    assert (found.events, found.quarantined) == (2, 1)
    (tmp_path / "in.csv").write_bytes(b'ts,x\n1,"x\ny"\n2,b\r3,c\n')
    with pytest.raises(lc.InputError, match="must have rows, but all 3 are bad"):
        lc.profile(tmp_path / "in.csv", time="ts", quarantine=True)


def test_json_without_sense_is_an_error_and_null_stays_null(tmp_path: Path) -> None:
    path = tmp_path / "in.json"
    path.write_text('[{"ts": 1}]\n')
    with pytest.raises(lc.InputError, match="line 1 must be a JSON object"):
        lc.profile(path, time="ts")
    path.write_text('{"ts": 1, "device": "a", "x": null}\n{"ts": 2, "device": null, "x": "b"}\n')
    lc.generate(config(path, {"factor": 0, "maxDelay": 1, "name": "x"}), tmp_path / "out")
    rows = read(tmp_path / "out" / "x")
    assert rows["x"].to_pylist() == [None, "b"]
    assert rows["device"].to_pylist() == ["a", None]


def test_parquet_times_at_the_edges(tmp_path: Path) -> None:
    far = pa.array([253_370_764_800_000_000], pa.timestamp("us"))  # the year 9999
    pq.write_table(pa.table({"ts": far}), tmp_path / "old.parquet", use_deprecated_int96_timestamps=True)
    assert lc.profile(tmp_path / "old.parquet", time="ts").first_ts_us == 253_370_764_800_000_000
    pq.write_table(pa.table({"ts": pa.array([5, 2**63 + 1], pa.uint64())}), tmp_path / "unsigned.parquet")
    found = lc.profile(tmp_path / "unsigned.parquet", time="ts", quarantine=True)
    assert (found.events, found.quarantined) == (1, 1)


def test_added_columns_differ_in_more_than_case(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text("ts,device,Arrival\n1,a,2\n")
    with pytest.raises(lc.InputError, match="must not have a column 'arrival'"):
        lc.generate(config(tmp_path / "c.csv", {"factor": 1, "maxDelay": 1}), tmp_path / "new")


def test_a_file_that_is_no_gzip_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "in.csv.gz").write_bytes(b"ts,device\n1,a\n")
    with pytest.raises(lc.InputError, match="must be readable to its end"):
        lc.profile(tmp_path / "in.csv.gz", time="ts")


def test_an_unknown_engine_is_refused_before_a_folder_is_made(tmp_path: Path) -> None:
    write_csv(tmp_path / "in.csv", in_order())
    asked: Any = "flink"
    with pytest.raises(lc.InputError, match="engine must be auto, python or spark"):
        lc.generate(config(tmp_path / "in.csv", {"factor": 1, "maxDelay": 1}), tmp_path / "new", engine=asked)
    assert not (tmp_path / "new").exists()
