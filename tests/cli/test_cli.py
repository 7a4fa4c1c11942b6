"""The command line as a person meets it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from latecomer import __version__
from latecomer.cli.main import app
from latecomer.experiments.report import Report, Target

COMMAND = [str(Path(sys.executable).with_name("latecomer"))]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=60, check=False)


def test_help_and_version_answer_without_spark() -> None:
    assert "demo" in run("--help").stdout
    assert run("--version").stdout.strip() == f"latecomer {__version__}"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("demo", "--rows", "5"), "error: --rows must be at least 1000; got 5; e.g. --rows 200000"),
        (("demo", "--keep", "."), "error: --keep must name a folder that does not exist yet"),
        (("bench", "operator", "--rows", "10"), "error: --rows must be at least 6 micro-batches"),
        (("bench", "operator", "--json", "/nowhere/x.json"), "error: --json must name a file in a folder that exists"),
        (("bench", "reorder", "--rows", "10"), "error: --rows must be at least 6 micro-batches"),
        (("bench", "sort", "--only", "flights"), "error: --only must be one of synthetic, cloudlog, androidlog"),
        (("bench", "sort", "--html", "/nowhere/x.html"), "error: --html must name a file in a folder that exists"),
        (("demo", "--rows", "many"), "Invalid value for '--rows'"),
        (("fly",), "No such command 'fly'"),
    ],
)
def test_wrong_arguments_end_with_code_2_and_no_traceback(arguments: tuple[str, ...], message: str) -> None:
    answer = run(*arguments)
    assert answer.returncode == 2
    assert message in " ".join(answer.stderr.split())
    assert "Traceback" not in answer.stderr
    assert answer.stdout == ""


def test_debug_shows_the_traceback() -> None:
    assert "Traceback" in run("--debug", "demo", "--rows", "5").stderr


def test_the_demo_accounts_for_every_row(spark: SparkSession, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    answer = CliRunner().invoke(app, ["demo", "--rows", "4000", "--keep", str(kept)], env={"COLUMNS": "80"})
    assert answer.exit_code == 0, answer.output
    assert "4,000 of 4,000 rows accounted for: every row has one door." in answer.output
    assert "in event-time order within each shard" in answer.output
    assert max(len(line) for line in answer.output.splitlines() if str(tmp_path) not in line) <= 80
    assert (kept / "out" / "late").is_dir()


def test_a_report_has_one_shape(tmp_path: Path) -> None:
    report = Report("toy", {"rows": 1}, [{"path": "x"}], [Target("a", 1.0, 2.0), Target("b", 1.0, 2.0, at_least=False)])
    report.write(tmp_path / "toy.json")
    written = json.loads((tmp_path / "toy.json").read_text())
    assert list(written) == ["name", "versions", "settings", "results", "targets"]
    assert [target["met"] for target in written["targets"]] == [False, True]
    assert written["versions"]["latecomer"] == __version__
