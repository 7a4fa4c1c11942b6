"""Recordings: what is opened, what is refused, what is due when."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from latecomer.disorder import recording as recordings
from latecomer.disorder.player import Player, read_options
from latecomer.disorder.recording import Recording, open_recording, read_span
from latecomer.disorder.ticks import STAMPS_KEPT, Ticks
from latecomer.errors import InputError

START_US = 1_700_000_000_000_000
TICK_US = 100_000


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now_us = 5_000_000

    def __call__(self) -> int:
        return self.now_us * 1_000


def record(path: Path, offsets_us: list[int], kind: pa.DataType | None = None, **how: Any) -> Recording:
    """A recording of rows that arrive at START_US plus the offsets."""
    stamps = pa.array([START_US + offset for offset in offsets_us], pa.int64()).cast(pa.timestamp("us", "UTC"))
    table = pa.table({"id": pa.array(range(len(stamps)), pa.int64()), "arrival": stamps.cast(kind or stamps.type)})
    pq.write_table(table, path, **{"row_group_size": 2, **how})
    return open_recording(str(path), "arrival")


def stamps_of(recording: Recording) -> list[int]:
    ticks = Ticks(recording, TICK_US)
    return [ticks.arrival_us(row) - START_US for row in range(ticks.rows)]


def test_a_tick_is_due_when_its_last_event_is_and_not_a_microsecond_before(tmp_path: Path) -> None:
    ticks = Ticks(record(tmp_path / "a.parquet", [0, 30_000, 60_000, 120_000, 310_000, 399_999]), TICK_US)
    clock = Clock()
    player = Player(ticks, Fraction(1), clock)
    start = clock.now_us
    assert player.due(0) == 0
    for moment, rows in [(59_999, 0), (60_000, 3), (119_999, 3), (120_000, 4), (399_998, 4), (399_999, 6)]:
        clock.now_us = start + moment
        assert player.due(0) == rows
    assert player.due(6) == 6


@pytest.mark.parametrize(("speed", "moment"), [("0.1", 1_000_000), ("3", 33_334), ("1/7", 700_000)])
def test_speed_stretches_time_exactly(tmp_path: Path, speed: str, moment: int) -> None:
    ticks, clock = Ticks(record(tmp_path / "a.parquet", [0, 100_000]), TICK_US), Clock()
    player = Player(ticks, Fraction(speed), clock)
    assert player.due(0) == 1
    clock.now_us += moment - 1
    assert player.due(1) == 1
    clock.now_us += 1
    assert player.due(1) == 2


def test_a_restart_plays_the_next_event_at_once(tmp_path: Path) -> None:
    ticks, clock = Ticks(record(tmp_path / "a.parquet", [0, 5_000_000, 9_000_000]), TICK_US), Clock()
    player = Player(ticks, Fraction(1), clock)
    assert player.due(1) == 2
    clock.now_us += 3_999_999
    assert player.due(2) == 2
    player.wait()
    assert player.due(2) == 3


def test_a_limit_takes_whole_ticks_and_at_least_one(tmp_path: Path) -> None:
    ticks = Ticks(record(tmp_path / "a.parquet", [0, 1, 2, 100_000, 200_000, 200_001]), TICK_US)
    player = Player(ticks, None, Clock())
    assert [player.due(0, limit) for limit in (1, 3, 4, 5, 6, 99)] == [3, 3, 4, 4, 6, 6]
    assert [player.due(3, limit) for limit in (1, 2, 3)] == [4, 4, 6]
    slow = Player(ticks, Fraction(1), Clock())
    assert slow.due(0, 1) == 0  # not even the first tick is due


@pytest.mark.parametrize(
    "how",
    [
        {"kind": pa.int64()},
        {"kind": pa.timestamp("us")},
        {"kind": pa.timestamp("us", "Asia/Tokyo")},
        {"kind": pa.timestamp("ns", "UTC")},
        {"write_statistics": False},
        {"use_deprecated_int96_timestamps": True, "store_schema": False},
    ],
)
def test_stamps_of_any_kind_are_microseconds(tmp_path: Path, how: dict[str, Any]) -> None:
    offsets = [0, 1, 1, 100_001, 5_000_000]
    assert stamps_of(record(tmp_path / "a.parquet", offsets, **how)) == offsets


def test_old_stamps_without_a_zone_mean_utc(tmp_path: Path) -> None:
    found = record(tmp_path / "a.parquet", [0], use_deprecated_int96_timestamps=True, store_schema=False)
    assert found.schema.field("arrival").type == pa.timestamp("us", "UTC")


def test_files_are_played_in_the_order_of_their_names(tmp_path: Path) -> None:
    record(tmp_path / "b.parquet", [7])
    record(tmp_path / "a.parquet", [5, 6])
    pq.write_table(pq.read_table(tmp_path / "a.parquet").slice(0, 0), tmp_path / "aa.parquet")
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / ".a.parquet.crc").touch()
    assert stamps_of(open_recording(str(tmp_path), "arrival")) == [5, 6, 7]
    assert stamps_of(open_recording(tmp_path.as_uri(), "arrival")) == [5, 6, 7]


def test_an_arrival_that_goes_back_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        record(tmp_path / "a.parquet", [0, 5, 9, 10, 7, 20])  # between row groups: the statistics show it
    assert "a.parquet, row 4 (from 0), must not go back; got '2023-11-14T22:13:20.000007 after" in str(error.value)
    inside = record(tmp_path / "b.parquet", [0, 5, 10, 9, 11, 12])  # inside one: found when it is read
    with pytest.raises(InputError, match=r"b.parquet, row 3 \(from 0\), must not go back"):
        Ticks(inside, TICK_US).rows_until(START_US + 9)
    with pytest.raises(InputError, match=r"row 3 \(from 0\), must not go back"):
        list(read_span(Ticks(inside, TICK_US).spans(0, 3)[1], "arrival"))
    silent = record(tmp_path / "c.parquet", [0, 5, 3, 4], write_statistics=False)
    with pytest.raises(InputError, match=r"c.parquet, row 2 \(from 0\), must not go back"):
        Ticks(silent, TICK_US)


def test_a_large_row_group_is_read_a_batch_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recordings, "KEPT_BYTES", 0)
    monkeypatch.setattr(recordings, "BATCH_ROWS", 4)
    good = record(tmp_path / "a.parquet", list(range(20)), row_group_size=10)
    batches = [batch for span in Ticks(good, TICK_US).spans(3, 16) for batch in read_span(span, "arrival")]
    assert [batch.column("id").to_pylist() for batch in batches] == [
        [3],
        [4, 5, 6, 7],
        [8, 9],
        [10, 11, 12, 13],
        [14, 15],
    ]
    back = record(tmp_path / "b.parquet", [0, 1, 2, 4, 3, 5, 6, 7, 8, 9], row_group_size=10)
    with pytest.raises(InputError, match=r"row 4 \(from 0\), must not go back"):
        list(read_span(Ticks(back, TICK_US).spans(5, 10)[0], "arrival"))


def test_a_file_that_takes_the_place_of_another_is_read_anew(tmp_path: Path) -> None:
    for first in (0, 7):
        found = record(tmp_path / "a.parquet", [first, first + 1])
        rows = next(read_span(Ticks(found, TICK_US).spans(0, 2)[0], "arrival"))
        assert recordings.stamps_us(rows.column("arrival"))[0] == START_US + first


def test_the_index_keeps_few_stamps(tmp_path: Path) -> None:
    ticks = Ticks(record(tmp_path / "a.parquet", list(range(0, 1_000_000, 10_000)), row_group_size=5), TICK_US)
    for row in range(100):
        ticks.arrival_us(row)
        assert len(ticks._stamps._kept) <= STAMPS_KEPT
    ticks.close()


def test_what_is_no_recording_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"path must be a Parquet file or a folder of them; got '.*none'"):
        open_recording(str(tmp_path / "none"), "arrival")
    with pytest.raises(InputError, match=r"path must hold files named \*.parquet"):
        open_recording(str(tmp_path), "arrival")
    with pytest.raises(InputError, match="recording must hold at least one row"):
        record(tmp_path / "a.parquet", [])
    pq.write_table(pa.table({"arrival": pa.array([1, None, 2], pa.int64())}), tmp_path / "a.parquet")
    nulls = open_recording(str(tmp_path / "a.parquet"), "arrival")
    with pytest.raises(InputError, match=r"row 1 \(from 0\), must not be null"):
        Ticks(nulls, TICK_US)
    pq.write_table(pa.table({"arrival": ["x"]}), tmp_path / "a.parquet")
    with pytest.raises(InputError, match="arrival must be a timestamp or int64 microseconds: column 'arrival'"):
        open_recording(str(tmp_path), "arrival")
    with pytest.raises(InputError, match="arrival must name one column; got 'when'; the columns are arrival"):
        open_recording(str(tmp_path), "when")
    (tmp_path / "a.parquet").write_text("no")
    with pytest.raises(InputError, match=r"a.parquet must be Parquet; got"):
        open_recording(str(tmp_path), "arrival")
    record(tmp_path / "a.parquet", [0])
    record(tmp_path / "b.parquet", [0], pa.int64())
    with pytest.raises(InputError, match=r"b.parquet must have the columns of the first one: id int64, arrival time"):
        open_recording(str(tmp_path), "arrival")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "path must be a Parquet file or a folder of them; got ''"),
        ({"path": "p", "spead": "1"}, "options of playback must be among path, arrival, speed"),
        ({"path": "p", "speed": "0"}, "speed must be a number above zero, or 'max'; got '0'"),
        ({"path": "p", "speed": "inf"}, "speed must be a number above zero, or 'max'; got 'inf'"),
        ({"path": "p", "tick": "100"}, "tick must be a duration with a unit"),
        ({"path": "p", "maxRowsPerBatch": "0"}, "maxRowsPerBatch must be a whole number above zero; got '0'"),
        ({"path": "p", "partitions": "1.5"}, "partitions must be a whole number above zero; got '1.5'"),
    ],
)
def test_options_are_checked(options: dict[str, str], message: str) -> None:
    with pytest.raises(InputError) as error:
        read_options(options)
    assert message in str(error.value)


def test_options_are_read_in_any_case() -> None:
    read = read_options({"PATH": "p", "maxrowsperbatch": "7", "speed": "Max", "tick": "1 s"})
    assert (read.path, read.max_rows, read.speed, read.tick_us, read.partitions) == ("p", 7, None, 1_000_000, 1)
    assert read_options({"path": "p", "speed": "2.5"}).speed == Fraction(5, 2)


def test_nanoseconds_are_cut_off_as_arrow_does() -> None:
    values = pa.array([-1, 1_999], pa.timestamp("ns"))
    cut = values.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
    assert recordings.stamps_us(values).tolist() == cut.to_pylist()
