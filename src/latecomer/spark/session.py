"""A Spark session set up for late data, and the settings the operator needs in any session.

The only module that may touch SparkContext. `session()` starts a local JVM with RocksDB as state store, this very
Python for the workers, and everything the JVM says in a log file; an existing session is returned as it is.
"""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from latecomer.errors import InputError, LatecomerError, LatecomerWarning, must
from latecomer.spark.compat import AVAILABLE_NOW, plain_file_manager
from latecomer.spark.frames import ARROW_ROWS
from latecomer.spark.playback import register_playback
from latecomer.spark.session_folder import LOG, new_folder
from latecomer.spark.shared_settings import hold, let_go

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
PARTITIONS = "spark.sql.shuffle.partitions"
FILE_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
ARROW_ROWS_SETTING = "spark.sql.execution.arrow.maxRecordsPerBatch"
ARROW_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
COMPRESSED = "spark.sql.inMemoryColumnarStorage.compressed"
TRIES = 4  # of a task, as on a cluster: a local session of Spark's own gives up with the first
_LONGEST_FOLDER = 60  # bytes: a socket's whole name may have 104, of which Spark needs 42

_LOG: Path | None = None


def operator_settings(shards: int) -> dict[str, str]:
    """The SQL settings a query with our operator wants, read by Spark when the query starts."""
    return {
        PROVIDER: ROCKSDB,
        PARTITIONS: str(shards),
        CHANGELOG: "true",
        ARROW_ROWS_SETTING: str(ARROW_ROWS),
        COMPRESSED: "false",
    }


def session(
    app: str = "latecomer", *, cores: int | None = None, memory: str = "4g", sockets: bool = True
) -> SparkSession:
    """The running Spark session, or a new local one with the right settings.

    A task is tried four times, so a Python worker that is killed stops no query.
    With `sockets`, Python workers are reached without TCP: 40 ms less a micro-batch, but the JVM never forgets their
    names, 200 bytes a task. Not for months of many batches a second.
    """
    with contextlib.suppress(PySparkRuntimeError):  # there is none yet
        return SparkSession.active()
    cores = cores or os.cpu_count() or 1
    builder = SparkSession.builder.appName(app).master(f"local[{cores},{TRIES}]")
    for name, value in _start_settings(cores, memory, sockets=sockets).items():
        builder = builder.config(name, value)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    try:
        with _stderr_to(log_file()):
            spark = builder.getOrCreate()
    except Exception as error:
        advice = f"look at {log_file()}; without Java 17+, install Debian's default-jre-headless or set JAVA_HOME"
        raise LatecomerError(must("Spark", "start", str(error).split("\n", 1)[0], advice)) from error
    register_playback(spark)
    return spark


def log_file() -> Path:
    """Where the JVM that `session` starts writes its log."""
    global _LOG
    if _LOG is None:
        _LOG = new_folder() / LOG
    return _LOG


def _start_settings(cores: int, memory: str, *, sockets: bool) -> dict[str, str]:
    log4j2 = Path(__file__).with_name("log4j2.properties").as_uri()
    return {
        "spark.driver.memory": memory,
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={log4j2}",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(log_file().with_name("warehouse")),
        "spark.local.dir": str(log_file().with_name("local")),
        **(_socket_settings(str(log_file().parent)) if sockets else {}),
        **operator_settings(cores),
    }


def _socket_settings(folder: str) -> dict[str, str]:
    """Let workers talk to the JVM through sockets in a folder, where the names of those are not too long.

    Over TCP a worker waits 40 ms for the second of two small messages: Spark sends it when the first is acknowledged,
    and Linux takes its time to do so.
    """
    if len(os.fsencode(folder)) > _LONGEST_FOLDER:
        return {}
    return {f"spark.python.unix.domain.socket.{name}": value for name, value in (("enabled", "true"), ("dir", folder))}


@contextlib.contextmanager
def _stderr_to(path: Path) -> Iterator[None]:
    """Let child processes started meanwhile write their stderr to a file."""
    sys.stderr.flush()
    kept = os.dup(2)
    with open(path, "ab") as log:
        os.dup2(log.fileno(), 2)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, 2)
        os.close(kept)


def small_rows(spark: SparkSession) -> contextlib.AbstractContextManager[object]:
    """For passes over rows of numbers and names: larger Arrow batches, and no measuring of every row's bytes."""
    return changed_settings(spark, {ARROW_ROWS_SETTING: "16384", ARROW_BYTES: str(2**31 - 1)})


@contextlib.contextmanager
def settings_for_start(
    spark: SparkSession,
    shards: int,
    *,
    flat: bool,
    local: bool = False,
    tune: bool = True,
    more: Mapping[str, str] | None = None,
) -> Iterator[list[str]]:
    """Set what the operator wants while a query starts (Spark copies it then), and put everything back.

    Where the platform refuses a setting, the query starts without it, and a warning says what that costs; gives those.
    `local`: the checkpoint is on a disk of this machine. `tune`: without it no setting is touched. `more`: others.
    """
    wanted = {**_wanted_at_start(spark, shards, flat=flat, local=local), **(more or {})} if tune else {}
    with changed_settings(spark, wanted) as refused:
        check_provider(spark)
        warn_of_refused(refused, wanted)
        yield refused


def check_provider_at_start(spark: SparkSession, *, tune: bool) -> None:
    """Find out whether a query can have its state in RocksDB, before anything is written."""
    if tune and "RocksDB" not in (_value(spark, PROVIDER) or ""):
        with changed_settings(spark, {PROVIDER: ROCKSDB}):
            check_provider(spark)
    else:
        check_provider(spark)


def _wanted_at_start(spark: SparkSession, shards: int, *, flat: bool, local: bool) -> dict[str, str]:
    """The operator's settings, and two that depend on the rows and on the checkpoint.

    Spark's limit on the bytes of an Arrow batch costs a measurement per row; flat rows cannot exceed it by much. On a
    local disk Spark's default file manager starts a process per look at a link or permission, some fifty in a
    micro-batch. The plain one renames as atomically there, and checks for an existing file in the same way. Not so
    elsewhere: on HDFS it would keep the file of an earlier attempt.
    """
    wanted = operator_settings(shards)
    if flat:
        wanted[ARROW_BYTES] = str(2**31 - 1)
    if local and not any(_value(spark, name) for name in (FILE_MANAGER, f"spark.hadoop.{FILE_MANAGER}")):
        wanted[FILE_MANAGER] = plain_file_manager(spark)
    return wanted


@contextlib.contextmanager
def changed_settings(spark: SparkSession, wanted: dict[str, str]) -> Iterator[list[str]]:
    """Other settings for a while; gives the names of those that may not be read or changed here.

    Threads that want other values wait for each other. What cannot be put back is told, and stops nothing.
    """
    refused = hold(spark, wanted)
    try:
        yield refused
    finally:
        left = let_go([name for name in wanted if name not in refused])
        if left:
            text = (
                f"this session does not let us put back {', '.join(left)}: set them again where other queries need it"
            )
            warnings.warn(text, LatecomerWarning, stacklevel=4)


def _value(spark: SparkSession, name: str) -> str | None:
    """A setting, None where there is none or where it may not be read."""
    try:
        return spark.conf.get(name, None)
    except Exception:  # platforms have errors of their own for this
        return None


_COSTS = {
    PARTITIONS: "micro-batches are slow where there are many more partitions than shards, and shards share tasks where "
    "there are fewer",
    CHANGELOG: "whole snapshots of the state are written instead of what changed",
    ARROW_ROWS_SETTING: "rows cross into Python in smaller pieces",
    ARROW_BYTES: "Spark measures the bytes of every row that crosses into Python",
    FILE_MANAGER: "Spark starts some fifty processes a micro-batch for a local checkpoint",
    COMPRESSED: "what is kept between lanes is compressed",
    AVAILABLE_NOW: "available_now takes all there is in one micro-batch, whatever the limits of the sources",
}


def warn_of_refused(refused: list[str], wanted: dict[str, str]) -> None:
    """Say what it costs that settings could not be changed."""
    if refused:
        costs = "; ".join(f"{name} ({wanted[name]}): {_COSTS.get(name, 'another behaviour')}" for name in refused)
        text = f"this session does not let us change {len(refused)} settings, so the query goes on without: {costs}"
        warnings.warn(f"{text}. start(tune=False) touches none", LatecomerWarning, stacklevel=5)


def check_provider(spark: SparkSession) -> None:
    """State must be in RocksDB, Spark's own or that of the platform; where it cannot be read, Spark itself says so."""
    try:
        provider = spark.conf.get(PROVIDER, None)
    except Exception:  # platforms have errors of their own for this
        return
    if "RocksDB" not in (provider or ""):
        advice = f"run spark.conf.set('{PROVIDER}', '{ROCKSDB}') or start with latecomer.session()"
        raise InputError(must(PROVIDER, "be a RocksDB provider", provider, advice))


def check_settings(spark: SparkSession, shards: int) -> None:
    """Where we cannot set things ourselves, name the setting to change."""
    check_provider(spark)
    partitions = _value(spark, PARTITIONS) or ""
    if partitions.isdecimal() and int(partitions) > 4 * shards:
        text = f"{PARTITIONS} is {partitions} for {shards} shards, which is slow; "
        warnings.warn(text + f"run spark.conf.set('{PARTITIONS}', {shards})", LatecomerWarning, stacklevel=3)
