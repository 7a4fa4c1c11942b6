"""One stream, one windowed query, several ways to run it on Spark: what each gives, scored against the sorted run."""

from latecomer.spark.comparing.compare import compare_ways
from latecomer.spark.comparing.judge import Compared, Comparison, Doors, Judge, Speed
from latecomer.spark.comparing.question import Question
from latecomer.spark.comparing.recorded import LEAST_ROWS, Pace, RecordedStream, Roles, recorded
from latecomer.spark.comparing.usual import bound_of, round_waits, rounded, usual_ways
from latecomer.spark.comparing.ways import Asked, Way, ask, read_way, watermark_of

__all__ = [
    "LEAST_ROWS",
    "Asked",
    "Compared",
    "Comparison",
    "Doors",
    "Judge",
    "Pace",
    "Question",
    "RecordedStream",
    "Roles",
    "Speed",
    "Way",
    "ask",
    "bound_of",
    "compare_ways",
    "read_way",
    "recorded",
    "round_waits",
    "rounded",
    "usual_ways",
    "watermark_of",
]
