"""`latecomer reproduce all`: what papers say beside what was found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.command import run as command

from latecomer.report.shape import Report, Target
from latecomer_lab.papers import sayings
from latecomer_lab.papers.catalogue import CATALOGUE
from latecomer_lab.papers.contents import write_contents
from latecomer_lab.papers.experiments import MAKERS, Done, Made
from latecomer_lab.papers.factor import FactorBench, run
from latecomer_lab.papers.plain_page import plain_page
from latecomer_lab.statements import Statement


def _ignore(text: str) -> None:
    pass


@pytest.fixture(scope="module")
def made() -> Report:
    return run(FactorBench(events=2_000, factors=(5, 50), laws=("uniform", "pareto")), _ignore)


def test_every_experiment_is_made_by_all() -> None:
    assert list(MAKERS) == [each.name for each in CATALOGUE]


def test_streams_have_the_share_of_late_events_that_was_asked_for(made: Report) -> None:
    assert len(made.results) == 4
    assert all(target.met for target in made.targets)
    hit = [row for row in made.results if row["reach"] == "hit"]
    assert all(abs(row["late_percent"] - row["asked_percent"]) <= 0.5 for row in hit)
    assert {row["reach"] for row in made.results} == {"hit", "maximum"}


def test_the_poster_s_promises_stand_beside_what_was_made(made: Report) -> None:
    factor, seed = sayings.of_disorder(made)
    hit = sum(row["reach"] == "hit" for row in made.results)
    assert factor.here.startswith(f"{hit} of 4 streams have the share that was asked for")
    assert "pareto" in factor.here
    assert "% at most" in factor.here
    assert seed.here == "Made twice, the rows were the same."


def test_several_latencies_stand_beside_the_paper_s_by_query() -> None:
    report = Report("tiers", {})
    report.targets = [
        Target(f"{log} Q{query}: advanced against basic, {what}", query + 0.5, 1.0)
        for log in ("cloudlog", "androidlog")
        for what in ("throughput", "memory")
        for query in (1, 2, 3, 4)
    ]
    assert {said.here for said in sayings.of_tiers(report)} == {"1.5, 2.5, 3.5, 4.5."}


def test_a_page_tells_what_was_missed_what_cannot_be_compared_and_what_is_left(tmp_path: Path) -> None:
    report = Report("one", {"events": 5})
    report.results, report.targets = [{"figure": "a<b", "value": 1_000}], [Target("speed", 1.0, 2.0)]
    said = [Statement("Table 9", "twice as <fast>", "half as fast")]
    page = plain_page("latecomer reproduce one", "One", report, said)
    write_contents([Done(CATALOGUE[1], Made(report, page, said), 3.0)], CATALOGUE[2:3], tmp_path, quick=True)
    index = (tmp_path / "index.html").read_text()
    for text in ("twice as &lt;fast&gt;", "half as fast", "speed 1.0 (2.0)", "0 of 1 targets met", "figure7", "3 s"):
        assert text in index
    assert CATALOGUE[1].differs in index
    assert "a&lt;b" in (tmp_path / "table1.html").read_text()
    found = json.loads((tmp_path / "all.json").read_text())
    assert found["results"] == [{"experiment": "table1", **said[0]._asdict()}]
    assert found["targets"] == [
        {"name": "table1: speed", "value": 1.0, "target": 2.0, "at_least": True, "met": False},
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(("--only", "figure99"), "--only must be one of disorder, table1"), ((), "--out must name a folder")],
)
def test_wrong_arguments_end_with_code_2(arguments: tuple[str, ...], message: str, tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.write_text("")
    answer = command("reproduce", "all", "--out", str(taken), *arguments)
    assert answer.returncode == 2
    assert message in " ".join(answer.stderr.split())
