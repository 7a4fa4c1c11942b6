"""What a plan of Spark's says of steps that drop rows before we see them."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from latecomer.spark.upstream import plan_of, steps_before

PLAIN = """== Physical Plan ==
*(1) Project [ts#1, EventTimeWatermark#2, id#3 AS `x, state info [z`#5]
+- StreamingRelation FileSource[/in], [id#0L, ts#1]
"""
DEDUPLICATED = """== Physical Plan ==
StreamingDeduplicate [id#0L], state info [ checkpoint = <unknown>, runId = a0, opId = 0, ver = 0], -9, -9
+- Exchange hashpartitioning(id#0L, 2), REQUIRED_BY_STATEFUL_OPERATOR, [plan_id=34]
   +- EventTimeWatermark 85ab65aa, ts#1: timestamp, 5 seconds
      +- StreamingRelation FileSource[/in], [id#0L, ts#1]
"""
JOINED = """== Physical Plan ==
*(3) Project [id#0L, ts#1]
+- StreamingSymmetricHashJoin [id#0L], [id#17L], Inner, state info [ checkpoint = <unknown>], 2, Append
   :- Exchange hashpartitioning(id#0L, 2), REQUIRED_BY_STATEFUL_OPERATOR, [plan_id=225]
   :  +- *(1) HashAggregate(keys=[id#0L])
   :     +- StateStoreRestore [id#0L], state info [ checkpoint = <unknown>], 2
   :        +- SomethingNew [id#0L], state info [ checkpoint = <unknown>], 2
   +- ReusedExchange [id#17L], Exchange hashpartitioning(id#0L, 2)
"""


@pytest.mark.parametrize(
    ("plan", "found"),
    [
        ("", []),
        (PLAIN, []),
        (DEDUPLICATED, ["withWatermark", "dropDuplicates"]),
        ("CollectMetrics latecomer-1-2, [seen]\n+- TransformWithStateInPySpark x, state info [ checkpoint = 1]", []),
        (JOINED, ["join", "groupBy", "SomethingNew"]),
    ],
)
def test_steps_with_a_state_are_found_in_a_plan(plan: str, found: list[str]) -> None:
    assert steps_before(plan) == found


class Talkative:
    """A DataFrame that explains itself while another thread prints."""

    def explain(self) -> None:
        other = threading.Thread(target=print, args=("from elsewhere",))
        other.start()
        other.join()
        print("== Physical Plan ==")


def test_what_others_print_while_a_plan_is_read_is_still_printed(capsys: pytest.CaptureFixture[str]) -> None:
    talkative: Any = Talkative()
    assert plan_of(talkative) == "== Physical Plan ==\n"
    assert capsys.readouterr().out == "from elsewhere\n"


def test_a_platform_that_explains_nothing_stops_nothing() -> None:
    class Silent:
        def explain(self) -> None:
            raise RuntimeError("not here")

    silent: Any = Silent()
    assert plan_of(silent) == ""
