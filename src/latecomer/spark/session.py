"""A Spark session set up for late data, and the settings the operator needs in any session.

The only module that may touch SparkContext. `session()` starts a local JVM with RocksDB as state store, this very
Python for the workers, and everything the JVM says in a log file; an existing session is returned as it is.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from latecomer.errors import InputError, LatecomerError, LatecomerWarning, must
from latecomer.spark.frames import ARROW_ROWS
from latecomer.spark.playback import register_playback

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
PARTITIONS = "spark.sql.shuffle.partitions"
FILE_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
# On a local disk Spark's default starts a process per look at a link or permission, some fifty in a micro-batch. This
# one renames as atomically there, and checks for an existing file in the same way. Not so elsewhere: on HDFS it would
# keep the file of an earlier attempt.
PLAIN_FILES = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"

_LONGEST_FOLDER = 60  # bytes: a socket's whole name may have 104, of which Spark needs 42

_LOG: Path | None = None


def operator_settings(shards: int) -> dict[str, str]:
    """The SQL settings a query with our operator wants, read by Spark when the query starts."""
    return {
        PROVIDER: ROCKSDB,
        PARTITIONS: str(shards),
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(ARROW_ROWS),
        "spark.sql.inMemoryColumnarStorage.compressed": "false",
    }


def session(
    app: str = "latecomer", *, cores: int | None = None, memory: str = "4g", sockets: bool = True
) -> SparkSession:
    """The running Spark session, or a new local one with the right settings.

    With `sockets`, Python workers are reached without TCP: 40 ms less a micro-batch, but the JVM never forgets their
    names, 200 bytes a task. Not for months of many batches a second.
    """
    with contextlib.suppress(PySparkRuntimeError):  # there is none yet
        return SparkSession.active()
    cores = cores or os.cpu_count() or 1
    builder = SparkSession.builder.appName(app).master(f"local[{cores}]")
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
        _LOG = Path(tempfile.mkdtemp(prefix="latecomer-")) / "spark.log"
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


def small_rows(spark: SparkSession) -> contextlib.AbstractContextManager[None]:
    """For passes over rows of numbers and names: larger Arrow batches, and no measuring of every row's bytes."""
    wanted = {
        "spark.sql.execution.arrow.maxRecordsPerBatch": "16384",
        "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
    }
    return changed_settings(spark, wanted)


def settings_for_start(
    spark: SparkSession, shards: int, *, flat: bool, local: bool = False
) -> contextlib.AbstractContextManager[None]:
    """Set what the operator wants while a query starts (Spark copies it then), and put everything back.

    Spark's limit on the bytes of an Arrow batch costs a measurement per row; flat rows cannot exceed it by much.
    `local`: the checkpoint is on a disk of this machine.
    """
    wanted = operator_settings(shards)
    if flat:
        wanted["spark.sql.execution.arrow.maxBytesPerBatch"] = str(2**31 - 1)
    chosen = (spark.conf.get(name, None) for name in (FILE_MANAGER, f"spark.hadoop.{FILE_MANAGER}"))
    if local and not any(chosen):
        wanted[FILE_MANAGER] = PLAIN_FILES
    return changed_settings(spark, wanted)


@contextlib.contextmanager
def changed_settings(spark: SparkSession, wanted: dict[str, str]) -> Iterator[None]:
    """Other settings for a while."""
    before = {name: spark.conf.get(name, None) for name in wanted}
    try:
        for name, value in wanted.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, old in before.items():
            if old is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, old)


def check_settings(spark: SparkSession, shards: int) -> None:
    """Where we cannot set things ourselves, name the setting to change."""
    provider = spark.conf.get(PROVIDER)
    if provider != ROCKSDB:
        advice = f"run spark.conf.set('{PROVIDER}', '{ROCKSDB}') or start with latecomer.session()"
        raise InputError(must(PROVIDER, "be Spark's RocksDB provider", provider, advice))
    partitions = int(spark.conf.get(PARTITIONS) or 0)
    if partitions > 4 * shards:
        text = f"{PARTITIONS} is {partitions} for {shards} shards, which is slow; "
        warnings.warn(text + f"run spark.conf.set('{PARTITIONS}', {shards})", LatecomerWarning, stacklevel=3)
