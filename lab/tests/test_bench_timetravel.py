"""`latecomer bench timetravel` as a person meets it, on a handful of meters."""

from __future__ import annotations

import json
from pathlib import Path

from pyspark.sql import SparkSession
from tests.command import run
from typer.testing import CliRunner

from latecomer.cli.main import app

SMALL = ["--meters", "6", "--days", "3", "--rounds", "1", "--batch", "87", "--seed", "1", "--warm", "0"]


def test_the_bench_shows_and_writes_its_figures(spark: SparkSession, tmp_path: Path) -> None:
    written = tmp_path / "bench.json"
    answer = CliRunner().invoke(app, ["bench", "timetravel", *SMALL, "--json", str(written)], env={"COLUMNS": "80"})
    assert answer.exit_code == 0, answer.output
    assert max(len(line) for line in answer.stdout.splitlines() if str(tmp_path) not in line) <= 80
    report = json.loads(written.read_text())
    assert [row["path"] for row in report["results"] if "path" in row] == ["time travel", "discarding", "waiting"]
    forms = {row["form"]: row for row in report["results"] if "exact" in row}
    assert list(forms) == ["discarding", "waiting", "lazy", "eager", "fresh"]
    for form in ("waiting", "lazy", "eager", "fresh"):
        assert (forms[form]["omitted"], forms[form]["different_left"], forms[form]["spurious_left"]) == (0, 0, 0)
        assert forms[form]["exact"] == report["settings"]["alerts"]
    figures = {target["name"]: target for target in report["targets"]}
    assert len(figures) == 8
    assert all(target["met"] for name, target in figures.items() if not name.startswith("throughput"))


def test_what_a_batch_costs_by_the_keys_it_touches_is_measured(tmp_path: Path) -> None:
    written = tmp_path / "keys.json"
    answer = CliRunner().invoke(app, ["bench", "timetravel", "--keys", "1000", "--json", str(written)])
    assert answer.exit_code == 0, answer.output
    report = json.loads(written.read_text())
    ways = ["the same keys", "keys at random", "keys that are new"]
    assert [row["keys"] for row in report["results"]] == ways * 2
    assert len(report["targets"]) == 6


def test_too_few_batches_end_with_code_2_and_no_traceback() -> None:
    answer = run("bench", "timetravel", "--meters", "6", "--days", "3", "--batch", "500")
    assert answer.returncode == 2
    told = " ".join(answer.stderr.split())
    assert "error: --batch must leave 4 micro-batches or more of" in told
    assert "Traceback" not in answer.stderr
