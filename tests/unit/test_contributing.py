"""The strategy of CONTRIBUTING.md, made as the page says."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from latecomer.contract import VERBS
from latecomer.events import Layout
from latecomer.testing import check_machine, random_stream, run_machine
from tests.contributing import USE, files_of_the_page, followed


def test_page_has_a_strategy_its_test_and_its_use() -> None:
    assert list(files_of_the_page()) == ["watch/__init__.py", "watch/watch.py", "test_watch.py", USE]


def test_test_of_the_page_passes(tmp_path: Path) -> None:
    with followed(tmp_path):
        import_module("test_watch").test_watch_keeps_the_five_invariants()
        assert "watch" in VERBS
    assert "watch" not in VERBS


def test_check_machine_notices_a_strategy_of_the_page_that_breaks_its_promise(tmp_path: Path) -> None:
    with followed(tmp_path):
        watch = import_module("watch").Watch
        greedy = type("Greedy", (watch,), {"most_held": lambda self, accepted_ts_us, timeline: 0})
        with pytest.raises(AssertionError, match="holds what it promises"):
            check_machine(greedy("key", above=3, latency="20 ms"))


def test_view_of_the_page_has_the_rows_that_its_counter_counts(tmp_path: Path) -> None:
    with followed(tmp_path):
        settings = import_module("watch").Watch("key", above=3, latency="20 ms")
        given = run_machine(settings, random_stream(5)).given()
        assert given is not None
        expected = [key > 3 for key in given.column("key").to_pylist()]
        assert any(expected)
        assert settings.alarms(given).tolist() == expected
        with pytest.raises(ValueError, match="watch must name a column; got 'none'"):
            settings.__class__("none", above=3, latency="20 ms").gives(given.schema, Layout("ts"))
