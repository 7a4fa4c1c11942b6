"""`latecomer bench timetravel` as a person meets it, on a handful of meters."""

from __future__ import annotations

import json
from pathlib import Path

from pyspark.sql import SparkSession
from tests.command import run
from typer.testing import CliRunner

from latecomer.cli.main import app
from latecomer.disorder.presets.meters import Meters
from latecomer_lab.timetravel.on_spark import run_whole

SMALL = ["--meters", "6", "--days", "4", "--rounds", "1", "--batch-days", "1", "--seed", "1", "--warm", "0"]


def test_the_bench_shows_and_writes_its_figures(spark: SparkSession, tmp_path: Path) -> None:
    written = tmp_path / "bench.json"
    answer = CliRunner().invoke(app, ["bench", "timetravel", *SMALL, "--json", str(written)], env={"COLUMNS": "80"})
    assert answer.exit_code == 0, answer.output
    assert max(len(line) for line in answer.stdout.splitlines() if str(tmp_path) not in line) <= 80
    report = json.loads(written.read_text())
    assert [row["path"] for row in report["results"]] == ["time travel", "discarding", "waiting", "light"]
    assert [target["target"] for target in report["targets"]] == [0.7, 5.0]


def test_what_a_batch_costs_by_the_keys_it_touches_is_measured(tmp_path: Path) -> None:
    written = tmp_path / "keys.json"
    answer = CliRunner().invoke(app, ["bench", "timetravel", "--keys", "1000", "--json", str(written)])
    assert answer.exit_code == 0, answer.output
    report = json.loads(written.read_text())
    ways = ["the same keys", "keys at random", "keys that are new"]
    assert [row["keys"] for row in report["results"]] == ways * 2
    assert len(report["targets"]) == 6


def test_too_few_batches_end_with_code_2_and_no_traceback() -> None:
    answer = run("bench", "timetravel", "--meters", "6", "--days", "3", "--batch-days", "2")
    assert answer.returncode == 2
    told = " ".join(answer.stderr.split())
    assert "error: --batch-days must leave 4 micro-batches or more of" in told
    assert "Traceback" not in answer.stderr


def test_the_whole_stream_runs_once_and_says_its_memory(spark: SparkSession) -> None:
    row, megabytes = run_whole(Meters(20, 3), lambda text: None)
    assert row["readings"] == len(Meters(20, 3).table())
    assert row["rows_per_s"] > 0
    assert row["share_of_light"] > 0
    assert megabytes > 100
