"""`latecomer bench` and `latecomer reproduce` as a person meets them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.command import run
from typer.testing import CliRunner

from latecomer import __version__
from latecomer.cli.main import app
from latecomer.report.shape import Report, Target
from latecomer_lab.papers.catalogue import CATALOGUE


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("bench", "operator", "--rows", "10"), "error: --rows must be at least 6 micro-batches"),
        (("bench", "operator", "--json", "/nowhere/x.json"), "error: --json must name a file in a folder that exists"),
        (("bench", "reorder", "--rows", "10"), "error: --rows must be at least 6 micro-batches"),
        (("bench", "sort", "--only", "flights"), "error: --only must be one of synthetic, cloudlog, androidlog"),
        (("bench", "sort", "--html", "/nowhere/x.html"), "error: --html must name a file in a folder that exists"),
        (
            ("reproduce", "table1", "--json", "/nowhere/x.json"),
            "error: --json must name a file in a folder that exists",
        ),
        (("reproduce", "table99"), "No such command 'table99'"),
    ],
)
def test_wrong_arguments_end_with_code_2_and_no_traceback(arguments: tuple[str, ...], message: str) -> None:
    answer = run(*arguments)
    assert answer.returncode == 2
    assert message in " ".join(answer.stderr.split())
    assert "Traceback" not in answer.stderr
    assert answer.stdout == ""


def test_a_report_has_one_shape(tmp_path: Path) -> None:
    report = Report("toy", {"rows": 1}, [{"path": "x"}], [Target("a", 1.0, 2.0), Target("b", 1.0, 2.0, at_least=False)])
    report.write(tmp_path / "toy.json")
    written = json.loads((tmp_path / "toy.json").read_text())
    assert list(written) == ["name", "versions", "settings", "results", "targets"]
    assert [target["met"] for target in written["targets"]] == [False, True]
    assert written["versions"]["latecomer"] == __version__


def test_reproduce_lists_what_there_is() -> None:
    answer = CliRunner().invoke(app, ["reproduce"], env={"COLUMNS": "80"})
    assert answer.exit_code == 0, answer.output
    assert all(each.command in answer.output for each in CATALOGUE)
    assert max(map(len, answer.output.splitlines())) <= 80
    assert "Tables I and II" in answer.output


def test_a_reproduction_writes_the_report_of_its_bench(tmp_path: Path) -> None:
    written = []
    for command in (["bench", "presets"], ["reproduce", "table1"]):
        answer = CliRunner().invoke(app, [*command, "--events", "2000", "--json", str(tmp_path / "x.json")])
        assert answer.exit_code == 0, answer.output
        written.append(json.loads((tmp_path / "x.json").read_text()))
    assert written[0] == written[1]
    assert {row["preset"] for row in written[0]["results"]} == {"cloudlog", "androidlog"}
