"""Results that stand, from results that changed: of a machine in plain Python, or of a DataFrame that a query wrote."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, overload

import pyarrow as pa

from latecomer.errors import InputError, must
from latecomer.extras import needed_for
from latecomer.outputs import Output
from latecomer.outputs import consolidate as consolidate_outputs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@overload
def consolidate(changes: DataFrame) -> DataFrame: ...


@overload
def consolidate(changes: Iterable[Output]) -> pa.Table | None: ...


def consolidate(changes: DataFrame | Iterable[Output]) -> DataFrame | pa.Table | None:
    """Sum changes: the results that stand in the end, each as often as it was given and not voided.

    changes: a batch DataFrame with a column `change` (the view `changes`, or the files it was written to), or the
    outputs of a machine in plain Python, of which the lane `results` counts; None where that gave nothing. What says
    only when and how a result was given is left out: `tier`, `pane`, `final`, and the `batch` of files.
    """
    given: Any = changes
    if hasattr(given, "sparkSession"):
        with needed_for("lc.consolidate"):
            from latecomer.spark.changes import consolidate_frame
        return consolidate_frame(given)
    if isinstance(changes, Iterable):
        outputs = list(changes)
        if all(isinstance(each, Output) for each in outputs):
            return consolidate_outputs(outputs)
    advice = "give result.changes of a batch, spark.read.parquet(...) of what was written, or what a machine gave"
    raise InputError(must("consolidate", "be given a DataFrame or outputs", type(changes).__name__, advice))
