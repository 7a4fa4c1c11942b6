"""`latecomer generate` and `latecomer profile` as a person meets them."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from latecomer.cli.main import app
from tests.command import run

RUNNER = CliRunner()


def write_input(folder: Path) -> Path:
    lines = [f"{1_700_000_000_000 + 10 * place};d{place % 9}" for place in range(5_000)]
    (folder / "in.csv").write_text("ts;device\n" + "\n".join(lines) + "\n")
    config = {
        "dataSource": {
            "file": "in.csv",
            "separator": ";",
            "time": {"timeIndex": "ts", "sourceTimeUnit": "ms"},
        },
        "experimentDataConfigurations": [
            {"targetOutOfOrderFactor": 25, "minDelay": 0, "maxDelay": 2000, "delaySeed": 7},
            {"targetOutOfOrderFactor": 100, "minDelay": 0, "maxDelay": 15, "delaySeed": 7},
        ],
    }
    (folder / "config.json").write_text(json.dumps(config))
    return folder / "config.json"


def test_generate_says_what_was_asked_and_what_came_out(tmp_path: Path) -> None:
    out = tmp_path / "out"
    answer = RUNNER.invoke(app, ["generate", str(write_input(tmp_path)), "--out", str(out)], env={"COLUMNS": "80"})
    assert answer.exit_code == 0, answer.output
    text = " ".join(answer.stdout.split())
    assert "00-uniform-25 5,000 25" in text
    assert "100 % cannot be reached with these delays; the reachable maximum is" in text
    report = json.loads((out / "report.json").read_text())
    first = report["experiments"][0]
    assert abs(first["late_percent"] - 25) <= 0.5
    assert pq.read_table(out / "00-uniform-25").num_rows == 5_000


def test_profile_shows_and_writes_its_numbers(tmp_path: Path) -> None:
    RUNNER.invoke(app, ["generate", str(write_input(tmp_path)), "--out", str(tmp_path / "out")])
    arguments = ["--time", "event_time", "--arrival", "arrival", "--key", "device", "--source", "device"]
    files = ["--json", str(tmp_path / "p.json"), "--html", str(tmp_path / "p.html"), "--period", "90 ms"]
    path = str(tmp_path / "out" / "00-uniform-25")
    answer = RUNNER.invoke(app, ["profile", path, *arguments, *files], env={"COLUMNS": "80"})
    assert answer.exit_code == 0, answer.output
    assert max(len(line) for line in answer.stdout.splitlines() if str(tmp_path) not in line) <= 80
    written = json.loads((tmp_path / "p.json").read_text())
    named = "events keys sources late lateness runs interleaved inversions distance completeness"
    assert set(named.split()) <= set(written)
    assert (written["events"], written["keys"], written["sources"]) == (5_000, 9, 9)
    assert written["holes"]["missing"] == 0
    assert "<svg" in (tmp_path / "p.html").read_text()


def test_a_preset_is_made_and_can_be_profiled(tmp_path: Path) -> None:
    out = tmp_path / ("t" * 60)
    answer = RUNNER.invoke(app, ["generate", "--preset", "traffic", "--seconds", "5", "--out", str(out)])
    assert answer.exit_code == 0, answer.output
    assert f"latecomer profile {out}/events --time ts --arrival arrival\n" in answer.output
    assert pq.read_table(out / "events").num_rows == 5_000
    answer = RUNNER.invoke(app, ["profile", str(out / "events"), "--time", "ts", "--source", "source"])
    assert answer.exit_code == 0, answer.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("generate",), "error: generate must be given a CONFIG or a --preset"),
        (("generate", "nowhere.json"), "error: configuration must be a file that can be read; got 'nowhere.json'"),
        (("generate", "--preset", "storm"), "error: preset must be one of synthetic, cloudlog, androidlog, meters"),
        (("generate", "--preset", "traffic", "--events", "5"), "preset traffic must be set by seconds, seed, policy"),
        (("generate", "--preset", "cloudlog", "--events", "0"), "must be a whole number of at least 1; got 0"),
        (("profile", "nowhere.csv", "--time", "ts"), "error: path must be a file or a folder; got 'nowhere.csv'"),
        (("profile", "README.md", "--time", "ts"), "error: path must say by one ending what the files are"),
        (("profile", "README.md", "--time", "ts", "--unit", "h"), "error: unit must be one of ps, ns, us, ms, s, iso"),
        (("profile", "README.md", "--time", "ts", "--format", "xls"), "error: --format must be csv, tsv, json or"),
        (("profile", "README.md"), "Missing option '--time'"),
    ],
)
def test_wrong_arguments_end_with_code_2_and_no_traceback(arguments: tuple[str, ...], message: str) -> None:
    answer = run(*arguments)
    assert answer.returncode == 2
    assert message in " ".join(answer.stderr.split())
    assert "Traceback" not in answer.stderr
    assert answer.stdout == ""


def test_json_that_is_none_names_the_line(tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text('{\n "source": \n}')
    answer = run("generate", str(tmp_path / "c.json"), "--out", str(tmp_path / "out"))
    assert answer.returncode == 2
    assert "line 3 column 1" in " ".join(answer.stderr.split())


def test_names_with_brackets_are_shown_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "[b]a.csv").write_text("ts\nzz[/red]\n")
    answer = run("profile", str(tmp_path / "[b]a.csv"), "--time", "ts")
    assert answer.returncode == 2
    assert "Traceback" not in answer.stderr
    text = "".join(answer.stderr.split())
    assert "[b]a.csv,line2,field'ts'" in text
    assert "'zz[/red]'" in text


def test_a_preset_does_not_take_names_of_columns(tmp_path: Path) -> None:
    answer = run("generate", "--preset", "traffic", "--arrival", "came", "--out", str(tmp_path / "x"))
    assert answer.returncode == 2
    assert "come with a CONFIG" in " ".join(answer.stderr.split())
