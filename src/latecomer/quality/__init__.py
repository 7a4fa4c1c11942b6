"""How good results are, against those of the same query on the sorted stream; and how soon the right ones come.

>>> import pyarrow as pa
>>> truth = pa.table({"ts": [1, 2, 3], "meter": [7, 7, 7], "kwh": [0.5, 0.25, 1.0]})
>>> given = pa.table({"ts": [1, 2, 9], "meter": [7, 7, 7], "kwh": [0.5, 0.75, 1.0]})
>>> classify(given, truth, ResultColumns("ts", ("meter",)))[:5]  # exact, omitted, different, duplicate, spurious
(1, 1, 1, 0, 1)
"""

from latecomer.quality.classes import Classes, classify, exact_rows
from latecomer.quality.columns import MARK, ResultColumns
from latecomer.quality.delays import (
    SHARES,
    exact_marks,
    latest_marks,
    logical_latencies,
    percentiles,
    responsiveness,
)
from latecomer.quality.scores import QUANTILES, Scores, Stream, completeness, first_marks, score, snapped

__all__ = [
    "MARK",
    "QUANTILES",
    "SHARES",
    "Classes",
    "ResultColumns",
    "Scores",
    "Stream",
    "classify",
    "completeness",
    "exact_marks",
    "exact_rows",
    "first_marks",
    "latest_marks",
    "logical_latencies",
    "percentiles",
    "responsiveness",
    "score",
    "snapped",
]
