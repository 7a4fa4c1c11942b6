"""Make and measure disorder from files: small data in this process, large data on Spark, with the same result."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from latecomer.disorder.config import SourceConfig, TimeConfig, check_config, load_config
from latecomer.disorder.generate import Outcome, make, prepare
from latecomer.disorder.presets import Preset
from latecomer.disorder.profile import Profile
from latecomer.disorder.profile_source import profile_source
from latecomer.disorder.source import Source, open_source
from latecomer.disorder.times import check_unit
from latecomer.disorder.write import Destination, write_table
from latecomer.durations import Duration, duration_us
from latecomer.errors import InputError, must

Engine = Literal["auto", "python", "spark"]
SMALL = 256 * 2**20  # bytes on disk that one process reads


def _ignore(_: str) -> None:
    """Tell nobody."""


def on_spark(engine: str, size: int) -> bool:
    """Whether Spark is to do the work."""
    if engine not in ("auto", "python", "spark"):
        raise InputError(must("engine", "be auto, python or spark", engine, "choose one"))
    return engine == "spark" or (engine == "auto" and size > SMALL)


def generate(
    config: str | Path | dict[str, Any],
    out: str | Path,
    *,
    format: Literal["parquet", "csv"] = "parquet",
    arrival: str = "arrival",
    event_time: str = "event_time",
    engine: Engine = "auto",
    tell: Callable[[str], None] = _ignore,
) -> list[Outcome]:
    """Make every experiment of a configuration (a file, or its content); each becomes a folder in `out`.

    format: parquet or csv. arrival: the name of the added column of arrival times. event_time: the name of the
    column with event times as timestamps, added where the time field is none. engine: python (this process), spark
    (data of any size), or auto (by size); the rows are the same.
    """
    name = "configuration" if isinstance(config, dict) else str(config)
    parsed = check_config(config, name) if isinstance(config, dict) else load_config(Path(config))
    folder = Path() if isinstance(config, dict) else Path(config).parent
    source, experiments = prepare(parsed, folder, name)
    spark_works = on_spark(engine, source.size)
    destination = destination_for(out, format, source, arrival, event_time)
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


def destination_for(out: str | Path, format: str, source: Source, arrival: str, event_time: str) -> Destination:
    """The folder to write to; CSV keeps the separator of a CSV source."""
    separator = source.form.separator if source.form is not None else None
    if format == "csv":
        return Destination(Path(out), "csv", separator or ",", arrival, event_time)
    if format != "parquet":
        raise InputError(must("format", "be parquet or csv", format, "choose one"))
    return Destination(Path(out), "parquet", ",", arrival, event_time)


def generate_preset(
    preset: Preset,
    out: str | Path,
    *,
    format: Literal["parquet", "csv"] = "parquet",
    engine: Engine = "auto",
    tell: Callable[[str], None] = _ignore,
) -> Path:
    """Write a made stream, in order of arrival, into a new folder."""
    if format not in ("parquet", "csv"):
        raise InputError(must("format", "be parquet or csv", format, "choose one"))
    spark_works = on_spark(engine, preset.rows * 16)
    destination = Destination(Path(out), format)
    destination.make_folder()
    if spark_works:
        from latecomer.spark.generating import preset_frame
        from latecomer.spark.generating.generate import write
        from latecomer.spark.generating.preset import as_csv
        from latecomer.spark.session import session

        tell("making rows on Spark")
        frame = preset_frame(session(), preset)
        write(frame if format == "parquet" else as_csv(frame), destination, "events")
    else:
        tell("making rows")
        table = preset.table()
        tell("writing")
        write_table(table, destination, "events")
    return destination.folder / "events"


def profile_path(
    path: str | Path,
    *,
    time: str | int,
    unit: str = "us",
    arrival: str | None = None,
    key: str | None = None,
    source: str | None = None,
    period: Duration | None = None,
    format: Literal["csv", "tsv", "json", "parquet"] | None = None,
    separator: str | None = None,
    header: bool | None = None,
    quarantine: bool = False,
    engine: Engine = "auto",
) -> Profile:
    """Measure the disorder of a file or a folder of files.

    Rows come in the order of the files' names and lines, or by `arrival`. See `profile` for the other arguments; bad
    rows are an error, or with `quarantine` they are counted.
    """
    check_unit(unit, "unit")
    period_us = None if period is None else duration_us(period, "period")
    config = SourceConfig.model_construct(
        path=str(path),
        time=TimeConfig.model_construct(field=time, unit=unit),
        format=format,
        separator=separator,
        header=header,
        device=None,
        bad_rows="quarantine" if quarantine else "error",
    )
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

        with reading(str(path)):
            return profile_files(session(), opened, **roles, period_us=period_us, name=Path(path).name)
    return profile_source(opened, **roles, period_us=period_us, name=Path(path).name)
