"""What Spark says when something fails becomes one sentence."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException, PySparkException, PythonException, StreamingQueryException

import latecomer as lc
from latecomer.spark.failures import in_one_sentence, sentence

FAILED = "[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: "
PLAN = """ SQLSTATE: 39000 SQLSTATE: XXKST
=== Streaming Query ===
Identifier: [id = 1, runId = 2]
Logical Plan:
~Project ["latecomer.errors.InputError: a plan must not be read"]"""
WORKER = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "/opt/spark/python/lib/pyspark.zip/pyspark/worker.py", line 4327, in invoke_udf
    run_process()
  File "/somewhere/latecomer-0.1.0.zip/latecomer/tiers/ordered.py", line 254, in _changed
    given = returned(function(events.user_rows), returns, self._layout.time, name)
"""
USER = """  File "/home/ann/latecomer/job.py", line 18, in halve
    return rows / 0
           ~~~~~^~~
  File "/usr/lib/python3.11/fractions.py", line 7, in __truediv__
    raise ZeroDivisionError(
"""


def test_our_own_error_comes_back_as_it_was_raised() -> None:
    text = "events must come in time; got '60 too late'; raise the latency"
    spark = StreamingQueryException(f"{FAILED}{WORKER}latecomer.errors.LateError: {text}\n{PLAN}")
    with pytest.raises(lc.LateError) as raised, in_one_sentence():
        raise spark
    assert str(raised.value) == text
    assert raised.value.__cause__ is spark
    assert isinstance(raised.value, StreamingQueryException), "who catches Spark's error still does"
    assert type(raised.value).__name__ == "LateError"


def test_an_error_in_a_users_function_names_it_and_the_line() -> None:
    spark = StreamingQueryException(f"{FAILED}{WORKER}{USER}my.errors.ZeroDivisionError: 1/0\nat rows\n{PLAN}")
    said = str(sentence(spark))
    got = "'ZeroDivisionError: 1/0 (job.py, line 18)'"
    assert said.startswith(f"your function halve must run without an error; got {got}; mend it")
    assert "\n" not in said


def test_the_last_traceback_counts() -> None:
    first = "Traceback (most recent call last):\n  File \"a.py\", line 1, in a\n    pass\nKeyError: 'a'\n"
    second = first.replace("'a'", "'b'").replace("a.py", "b.py") + "\nDuring handling of it another occurred\n"
    assert "KeyError: 'a' (a.py, line 1)" in str(sentence(PythonException(second + first)))


def test_a_failure_outside_of_python_gives_the_deepest_cause() -> None:
    java = "Job aborted: Lost task (executor driver): java.io.IOException: No space left on device"
    assert str(sentence(StreamingQueryException(FAILED + java + PLAN))) == (
        "query must run without an error; got 'java.io.IOException: No space left on device'; "
        "what Spark says is the cause of this error"
    )
    told = sentence(StreamingQueryException(f"{FAILED}[MISSING] no such table.{PLAN}"))
    assert "got '[MISSING] no such table.'" in str(told)


def test_a_cause_that_only_the_jvm_shows_is_found() -> None:
    spark = StreamingQueryException(f"{FAILED}Exception thrown in awaitResult: {PLAN}")
    spark._stackTrace = "org.apache.Outer: x\n  at y\nCaused by: java.io.IOException: Disk quota exceeded\n  at z"  # type: ignore[attr-defined]
    assert "got 'java.io.IOException: Disk quota exceeded'" in str(sentence(spark))


def test_what_is_no_failure_of_python_or_of_a_query_stays_sparks() -> None:
    with pytest.raises(AnalysisException, match="no such column"), in_one_sentence():
        raise AnalysisException("[UNRESOLVED_COLUMN] no such column")


def test_a_failed_batch_is_both_ours_and_sparks() -> None:
    found = sentence(PythonException(f"{WORKER}latecomer.errors.HeldError: held events must stay; got 3; wait less\n"))
    assert isinstance(found, lc.HeldError)
    assert isinstance(found, PySparkException)
    odd = sentence(PythonException(f"{WORKER}latecomer.errors.OddError: this must be; got 3; do it\n"))
    assert type(odd).__name__ == "LatecomerError"
