"""Where lanes go, as users write it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from latecomer.errors import InputError
from latecomer.spark.lane_files import read
from latecomer.spark.sinks import Discard, Files, as_sink, folder_of

NO_SPARK: Any = None


def test_a_folder_may_be_text_a_path_or_files() -> None:
    assert as_sink("out", "sinks") == as_sink(Path("out"), "sinks") == as_sink(Files("out"), "sinks") == Files("out")
    assert as_sink(Files(Path("out"), "json"), "sinks") == Files("out", "json")  # type: ignore[arg-type]
    assert as_sink(Discard(), "sinks") == Discard()


@pytest.mark.parametrize("empty", ["", "  ", None, 7, b"out", ["out"]])
def test_a_folder_that_is_none_is_refused(empty: Any) -> None:
    with pytest.raises(InputError, match="checkpoint must be a folder; got"):
        folder_of(empty, "checkpoint")
    with pytest.raises(InputError, match="sinks must be a folder; got"):
        as_sink(Files(empty), "sinks")


@pytest.mark.parametrize("path", ["out[1]", "out/{a,b}", "out/*", "what?", "C:\\out"])
def test_a_folder_that_spark_would_read_as_a_pattern_is_refused(path: str) -> None:
    for refused in (
        lambda: folder_of(path, "path"),
        lambda: as_sink(path, "path"),
        lambda: as_sink(Files(path), "path"),
        lambda: read(NO_SPARK, path, "results"),
    ):
        with pytest.raises(InputError, match=r"path must name one folder; got .*; choose another name: where Spark"):
            refused()
