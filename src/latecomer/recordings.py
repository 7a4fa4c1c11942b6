"""Make and measure disorder: small data in this process, large data on Spark, with the same result.

One name for each task, whatever it is given: `generate` takes a configuration or a preset, `profile` a DataFrame or
files, and what `preset` makes becomes an Arrow table or a DataFrame.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import pyarrow as pa

from latecomer.disorder import presets
from latecomer.disorder.generate import Outcome, make, prepare
from latecomer.disorder.presets import Preset
from latecomer.disorder.profile import EACH_ALONE, Clock, Profile
from latecomer.disorder.profile_source import profile_source
from latecomer.disorder.source import Source, open_source
from latecomer.disorder.times import check_unit
from latecomer.disorder.write import Destination, write_table
from latecomer.durations import DEFAULT_TICK, Duration, duration_us
from latecomer.errors import InputError, must
from latecomer.extras import needed_for

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from latecomer.disorder.config import SourceConfig

Engine = Literal["auto", "python", "spark"]
Written = Literal["parquet", "csv"]
Read = Literal["csv", "tsv", "json", "parquet"]
Tell = Callable[[str], None]
SMALL = 256 * 2**20  # bytes on disk that one process reads
ARRIVAL, EVENT_TIME = "arrival", "event_time"


@dataclass(frozen=True)
class MadeStream(Preset):
    """A made stream by its name: an Arrow table, or a DataFrame of any size."""

    preset: Preset

    @property
    def rows(self) -> int:
        """How many row numbers there are."""
        return self.preset.rows

    @property
    def schema(self) -> pa.Schema:
        """The columns, `ts` and `arrival` among them."""
        return self.preset.schema

    def block(self, start: int, stop: int) -> pa.Table:
        """The rows with numbers from start to stop - 1, in the order of their numbers; some may be missing."""
        return self.preset.block(start, stop)

    def table(self) -> pa.Table:
        """All rows in the order of their arrival."""
        return self.preset.table()

    def frame(self, spark: SparkSession, *, pieces: int | None = None) -> DataFrame:
        """All rows in the order of their arrival, made by Spark's tasks in so many pieces; the content is the same."""
        from latecomer.spark.generating import preset_frame

        return preset_frame(spark, self.preset, pieces=pieces)


def preset(name: str, **settings: Any) -> MadeStream:
    """A made stream by name, with its size and seed: `.table()` in this process, `.frame(spark)` on Spark.

    >>> preset("synthetic", events=1_000, seed=7).table().num_rows
    1000
    """
    return MadeStream(presets.preset(name, **settings))


def _ignore(_: str) -> None:
    """Tell nobody."""


@overload
def generate(
    source: Preset,
    out: str | PathLike[str],
    *,
    format: Written = ...,
    engine: Engine = ...,
    tell: Tell = ...,
) -> Path: ...


@overload
def generate(
    source: str | PathLike[str] | dict[str, Any],
    out: str | PathLike[str],
    *,
    format: Written = ...,
    arrival: str | None = ...,
    event_time: str | None = ...,
    engine: Engine = ...,
    tell: Tell = ...,
) -> list[Outcome]: ...


def generate(
    source: str | PathLike[str] | dict[str, Any] | Preset,
    out: str | PathLike[str],
    *,
    format: Written = "parquet",
    arrival: str | None = None,
    event_time: str | None = None,
    engine: Engine = "auto",
    tell: Tell = _ignore,
) -> list[Outcome] | Path:
    """Write a disordered stream into the new folder `out`.

    source: a configuration (a file, or its content), of which each experiment becomes a folder in `out` and an outcome
    is returned; or a preset, whose rows are written in order of arrival, and their folder is returned.
    format: parquet or csv. engine: python (this process), spark (data of any size), or auto (by size); the rows are the
    same. Of a configuration alone, arrival: the name of the added column of arrival times ("arrival"); event_time: the
    name of the column with event times as timestamps, added where the time field is none ("event_time").
    """
    if isinstance(source, Preset):
        for name, value in (("arrival", arrival), ("event_time", event_time)):
            if value is not None:
                advice = "leave it out: a preset has its own columns"
                raise InputError(must(f"{name}=", "come with a configuration", value, advice))
        return _write_preset(source, Path(out), format, engine, tell)
    if not isinstance(source, str | PathLike | dict):
        advice = "give a path, a dict, or lc.preset(...)"
        raise InputError(must("source", "be a configuration or a preset", type(source).__name__, advice))
    names = (ARRIVAL if arrival is None else arrival, EVENT_TIME if event_time is None else event_time)
    return _write_experiments(source, Path(out), format, names, engine, tell)


def _write_experiments(
    config: str | PathLike[str] | dict[str, Any],
    out: Path,
    format: Written,
    names: tuple[str, str],
    engine: Engine,
    tell: Tell,
) -> list[Outcome]:
    """Every experiment of a configuration, and a report of what came out."""
    with needed_for("a configuration"):
        from latecomer.disorder.config import check_config, load_config
    name = "configuration" if isinstance(config, dict) else str(config)
    parsed = check_config(config, name) if isinstance(config, dict) else load_config(Path(config))
    folder = Path() if isinstance(config, dict) else Path(config).parent
    source, experiments = prepare(parsed, folder, name)
    spark_works = on_spark(engine, source.size)
    destination = _destination(out, format, source, names)
    destination.open(source)
    if spark_works:
        from latecomer.spark.failures import reading
        from latecomer.spark.generating import make_on_spark
        from latecomer.spark.session import session

        with reading(parsed.source.path):
            outcomes = make_on_spark(session(), source, experiments, destination, tell)
    else:
        outcomes = make(source, experiments, destination, tell)
    destination.write_report({"experiments": [outcome.to_dict() for outcome in outcomes]})
    return outcomes


def _destination(out: Path, format: Written, source: Source, names: tuple[str, str]) -> Destination:
    """The folder to write to; CSV keeps the separator of a CSV source."""
    _check_written(format)
    separator = source.form.separator if source.form is not None and format == "csv" else None
    return Destination(out, format, separator or ",", *names)


def _check_written(format: str) -> None:
    if format not in ("parquet", "csv"):
        raise InputError(must("format", "be parquet or csv", format, "choose one"))


def _write_preset(made: Preset, out: Path, format: Written, engine: Engine, tell: Tell) -> Path:
    """All rows of a preset in the folder `events`."""
    _check_written(format)
    spark_works = on_spark(engine, made.rows * 16)
    destination = Destination(out, format)
    destination.make_folder()
    if spark_works:
        from latecomer.spark.generating import preset_frame
        from latecomer.spark.generating.generate import write
        from latecomer.spark.generating.preset import as_csv
        from latecomer.spark.session import session

        tell("making rows on Spark")
        frame = preset_frame(session(), made)
        write(frame if format == "parquet" else as_csv(frame), destination, "events")
    else:
        tell("making rows")
        table = made.table()
        tell("writing")
        write_table(table, destination, "events")
    return destination.folder / "events"


def on_spark(engine: str, size: int) -> bool:
    """Whether Spark is to do the work; it must be there then, before anything is written."""
    if engine not in ("auto", "python", "spark"):
        raise InputError(must("engine", "be auto, python or spark", engine, "choose one"))
    works = engine == "spark" or (engine == "auto" and size > SMALL)
    if works:
        with needed_for("engine='spark'"):
            import_module("latecomer.spark")
    return works


def profile(
    data: DataFrame | str | PathLike[str],
    *,
    time: str | int,
    unit: str = "us",
    arrival: str | None = None,
    order: str | Sequence[str] | None = None,
    key: str | None = None,
    source: str | None = None,
    period: Duration | None = None,
    tick: Duration | None = None,
    max_ahead: Duration | None = None,
    name: str | None = None,
    format: Read | None = None,
    separator: str | None = None,
    header: bool | None = None,
    quarantine: bool = False,
    engine: Engine = "auto",
) -> Profile:
    """Measure the disorder of a batch DataFrame, or of a file or a folder of files.

    time: event time, a timestamp, a date, whole numbers of `unit` (ps, ns, us, ms, s), or text (unit iso for dates);
    in files a number is the place of the column, from 0. arrival: when the row came. key, source: columns. period: how
    often each key should be heard of; then holes are counted. name: what the profile is called. With arrival, tick: the
    tick of the query ("100 ms" as in `lc.disordered`; "0 s" for every row by itself): lateness is then what strategies
    see. max_ahead: rows whose time is further ahead of their arrival are set aside and counted, as in the query.

    Of a DataFrame alone, order: columns that tell which of two rows came first where arrival does not; one of the two
    must be given, since a DataFrame has no order of its own. Rows that are still tied count as sorted by time. Rows
    without a usable time are counted as quarantined.

    Rows of files come in the order of the files' names and lines, or by `arrival`. Of files alone, format, separator
    and header: how they are written, where their names do not tell; quarantine: bad rows are counted instead of being
    an error; engine: python (this process), spark (data of any size), or auto (by size).
    """
    clock = _clock(arrival, tick, max_ahead)
    columns: dict[str, Any] = {"arrival": arrival, "key": key, "source": source, "period": period, "clock": clock}
    if isinstance(data, str | PathLike):
        _check_left_out({"order": order}, "a DataFrame", "files have an order of their own")
        form = {"format": format, "separator": separator, "header": header}
        config = source_config(Path(data), time, unit, form, quarantine=quarantine)
        return _profile_files(config, engine=engine, name=name or Path(data).name, **columns)
    file_only = {"format": format, "separator": separator, "header": header, "quarantine": quarantine or None}
    file_only["engine"] = None if engine == "auto" else engine
    _check_left_out(file_only, "files", "a DataFrame has its columns and its engine")
    if isinstance(time, int):
        raise InputError(must("time=", "name a column of the DataFrame", time, "places of columns are for files"))
    from latecomer.spark.profiling import profile_frame

    return profile_frame(data, time=time, unit=unit, order=order, name=name or "stream", **columns)


def _clock(arrival: str | None, tick: Duration | None, max_ahead: Duration | None) -> Clock:
    """How arrival counts; without arrival every row comes by itself."""
    if arrival is None:
        for name, value in (("tick", tick), ("max_ahead", max_ahead)):
            if value is not None:
                raise InputError(must(f"{name}=", "come with arrival=", value, "name the column of the arrival time"))
        return EACH_ALONE
    tick_us = duration_us(DEFAULT_TICK if tick is None else tick, "tick", zero=True)
    return Clock(tick_us or None, None if max_ahead is None else duration_us(max_ahead, "max_ahead", zero=True))


def _check_left_out(given: dict[str, Any], kind: str, why: str) -> None:
    """Refuse arguments that fit only the other kind of data."""
    for name, value in given.items():
        if value is not None:
            raise InputError(must(f"{name}=", f"come with {kind}", value, f"leave it out: {why}"))


def source_config(path: Path, time: str | int, unit: str, form: dict[str, Any], *, quarantine: bool) -> SourceConfig:
    """What files are, where no configuration says it."""
    with needed_for("a profile of files"):
        from latecomer.disorder.config import SourceConfig, TimeConfig
    check_unit(unit, "unit")
    return SourceConfig.model_construct(
        path=str(path),
        time=TimeConfig.model_construct(field=time, unit=unit),
        device=None,
        bad_rows="quarantine" if quarantine else "error",
        **form,
    )


def _profile_files(
    config: SourceConfig,
    *,
    arrival: str | None,
    key: str | None,
    source: str | None,
    period: Duration | None,
    clock: Clock,
    engine: Engine,
    name: str,
) -> Profile:
    period_us = None if period is None else duration_us(period, "period")
    opened = open_source(config)
    opened = opened if arrival is None else opened.with_arrival(arrival)
    for role, column in (("key", key), ("source", source)):
        if column is not None and column not in opened.names:
            raise InputError(must(role, "name a column", column, f"the columns are {', '.join(opened.names)}"))
    roles = {"key": key, "by_source": source}
    if on_spark(engine, opened.size):
        from latecomer.spark.failures import reading
        from latecomer.spark.profiling import profile_files
        from latecomer.spark.session import session

        with reading(config.path):
            return profile_files(session(), opened, **roles, period_us=period_us, clock=clock, name=name)
    return profile_source(opened, **roles, period_us=period_us, clock=clock, name=name)
