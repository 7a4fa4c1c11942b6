"""The command line as a person meets it."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
import typer
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from latecomer import __version__
from latecomer.cli.extra import GROUP, add_commands
from latecomer.cli.main import app
from latecomer.errors import InputError, LatecomerError
from tests.command import run

SENTENCE = "must come from the package latecomer-lab, which is not installed; run: pip install latecomer-lab"
COMMAND = [str(Path(sys.executable).with_name("latecomer"))]


def typed(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own."""
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=60, check=False)


def test_help_and_version_answer_without_spark() -> None:
    assert "demo" in run("--help").stdout
    assert typed("--version").stdout.strip() == f"latecomer {__version__}"


def test_an_error_is_the_same_in_a_process_of_its_own() -> None:
    answer = typed("demo", "--rows", "5")
    assert (answer.returncode, answer.stdout, answer.stderr) == run("demo", "--rows", "5")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("demo", "--rows", "5"), "error: --rows must be at least 1000; got 5; e.g. --rows 200000"),
        (("demo", "--keep", "."), "error: --keep must name a folder that does not exist yet"),
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
    assert "Traceback" in typed("--debug", "demo", "--rows", "5").stderr


def test_the_demo_accounts_for_every_row(spark: SparkSession, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    answer = CliRunner().invoke(app, ["demo", "--rows", "4000", "--keep", str(kept)], env={"COLUMNS": "80"})
    assert answer.exit_code == 0, answer.output
    assert "4,000 of 4,000 rows accounted for: every row has one door." in answer.output
    assert "in event-time order within each shard" in answer.output
    assert max(len(line) for line in answer.output.splitlines() if str(tmp_path) not in line) <= 80
    assert (kept / "out" / "late").is_dir()


def _command_line(*points: EntryPoint) -> typer.Typer:
    line = typer.Typer(pretty_exceptions_enable=False)
    line.callback()(lambda: None)
    add_commands(line, points)
    return line


@pytest.mark.parametrize(
    "arguments", [["bench"], ["bench", "sort", "--quick"], ["bench", "--help"], ["reproduce", "x"]]
)
def test_what_latecomer_lab_brings_is_named_where_it_is_missing(arguments: list[str]) -> None:
    answer = CliRunner().invoke(_command_line(), arguments)
    assert isinstance(answer.exception, InputError)
    assert str(answer.exception).startswith(f"`latecomer {arguments[0]}` {SENTENCE}")
    assert "pip install ./lab" in str(answer.exception)


def a_function(times: int = 1) -> None:
    """Say hello."""
    typer.echo("hello " * times)


an_app = typer.Typer(no_args_is_help=True)
an_app.callback()(lambda: None)
an_app.command("greet")(a_function)


def test_packages_add_functions_and_apps_as_commands() -> None:
    here = "tests.cli.test_cli"
    points = [EntryPoint(name, f"{here}:{value}", GROUP) for name, value in (("hi", "a_function"), ("bench", "an_app"))]
    line = _command_line(*points)
    assert CliRunner().invoke(line, ["hi", "--times", "2"]).output.split() == ["hello", "hello"]
    assert CliRunner().invoke(line, ["bench", "greet"]).output.split() == ["hello"]
    assert "Say hello." in CliRunner().invoke(line, ["--help"]).output


def test_a_package_that_cannot_be_loaded_leaves_the_other_commands_alone() -> None:
    line = _command_line(EntryPoint("broken", "no_such_module:app", GROUP))
    assert CliRunner().invoke(line, ["--help"]).exit_code == 0
    answer = CliRunner().invoke(line, ["broken"])
    assert isinstance(answer.exception, LatecomerError)
    assert "`latecomer broken` must load from no_such_module:app; got" in str(answer.exception)


def test_the_tour_compares_all_ways_and_writes_a_page(tmp_path: Path) -> None:
    """Rehearsed: that Spark gives the same is tested elsewhere."""
    page = tmp_path / "report.html"
    asked = ["tour", "--meters", "20", "--days", "4", "--batches", "3", "--html", str(page), "--engine", "python"]
    answer = CliRunner().invoke(app, asked, env={"COLUMNS": "80"})
    assert answer.exit_code == 0, answer.output
    assert "Next, your own stream: latecomer advise" in answer.output
    assert "every window is right" in answer.output
    assert page.stat().st_size > 500_000


def test_advice_needs_no_spark(tmp_path: Path) -> None:
    report = tmp_path / "advice.json"
    asked = ["--preset", "meters", "--size", "20", "--days", "4", "--window", "6 hours", "--json", str(report)]
    answer = run("advise", *asked, "--from", "withWatermark('ts', '1 hour')")
    assert answer.returncode == 0, answer.stderr
    assert "result = events.tumbling('6 hours').aggregate(lc.count())." in answer.stdout
    assert report.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("compare",), "compare must be given a PATH, a --preset or a --profile"),
        (("advise", "x.csv", "--preset", "meters"), "advise must be given a PATH, a --preset or a --profile"),
        (("compare", "x.csv", "--size", "3"), "--size must come with --preset"),
        (("compare", "nowhere.csv"), "path must be a file or a folder; got 'nowhere.csv'"),
        (("compare", "--preset", "meters", "--engine", "flink"), "engine must be spark or python"),
        (("compare", "--preset", "meters", "--way", "wait()"), "--way must be one of withWatermark"),
        (
            ("compare", "--preset", "meters", "--json", "/nowhere/x.json"),
            "--json must name a file in a folder that exists",
        ),
        (("advise", "--preset", "meters", "--complete", "0"), "--complete must be per cent"),
        (("compare", "--preset", "meters", "--window", "1"), "size must be a duration"),
    ],
)
def test_wrong_questions_of_a_comparison_are_named(arguments: tuple[str, ...], message: str) -> None:
    answer = run(*arguments)
    assert answer.returncode == 2
    assert message in " ".join(answer.stderr.split())
