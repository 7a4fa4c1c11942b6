"""Right answers from late data, on Spark.

>>> import latecomer as lc
>>> lc.Reorder("10 minutes").latency_us
600000000
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from latecomer._version import __version__ as __version__
from latecomer.extras import needed_for

if TYPE_CHECKING:
    from latecomer.advising import advise
    from latecomer.basic import PassThrough
    from latecomer.comparison import compare
    from latecomer.consolidated import consolidate
    from latecomer.errors import (
        HeldError,
        InputError,
        LatecomerError,
        LatecomerWarning,
        LateError,
        OrderSensitiveError,
        StateError,
    )
    from latecomer.optimistic import Optimistic, OptimisticSessions, OptimisticWindows
    from latecomer.query_control import Controlled, control
    from latecomer.recordings import generate, preset, profile
    from latecomer.reorder import Reorder
    from latecomer.report.html import to_html
    from latecomer.slack import FixedSlack, MaxTimestamp, Slack, SlackGate, SlackTuner, TcpLike
    from latecomer.sorter import ImpatienceSorter, Released
    from latecomer.spark.counters import final_through, read_counters, read_sources
    from latecomer.spark.disordered import Events, disordered
    from latecomer.spark.lane_files import read
    from latecomer.spark.playback import playback, register_playback
    from latecomer.spark.questions import AggregateQuery, App
    from latecomer.spark.result import Result
    from latecomer.spark.scanning import ScanQuery
    from latecomer.spark.session import session
    from latecomer.spark.shipping import ship
    from latecomer.spark.sinks import Discard, Files
    from latecomer.tiers import Ordered, Tiers
    from latecomer.timetravel import Anywhere, CustomHoles, Enumerator, Period, TimeTravel
    from latecomer.windows import (
        AggregateFunction,
        Chain,
        Fold,
        Join,
        Operator,
        Pattern,
        ScanFunction,
        SessionWindow,
        Step,
        Window,
        WindowAggregation,
    )
    from latecomer.windows import Count as count
    from latecomer.windows import CountDistinct as count_distinct
    from latecomer.windows import Custom as custom
    from latecomer.windows import ExponentialAverage as exponential_average
    from latecomer.windows import First as first
    from latecomer.windows import Lag as lag
    from latecomer.windows import Last as last
    from latecomer.windows import LastValue as last_value
    from latecomer.windows import Max as max
    from latecomer.windows import Mean as mean
    from latecomer.windows import Min as min
    from latecomer.windows import MovingAverage as moving_average
    from latecomer.windows import Quantile as quantile
    from latecomer.windows import RowNumber as row_number
    from latecomer.windows import RunningCount as running_count
    from latecomer.windows import RunningMax as running_max
    from latecomer.windows import RunningMin as running_min
    from latecomer.windows import RunningSum as running_sum
    from latecomer.windows import SessionStart as session_id
    from latecomer.windows import Stddev as stddev
    from latecomer.windows import Sum as sum
    from latecomer.windows import TopK as top_k
    from latecomer.windows import Variance as variance
    from latecomer.windows import WindowFunction as window_function

__all__ = [
    "AggregateFunction",
    "AggregateQuery",
    "WindowAggregation",
    "App",
    "Chain",
    "Controlled",
    "Discard",
    "Enumerator",
    "Events",
    "Files",
    "FixedSlack",
    "Fold",
    "HeldError",
    "ImpatienceSorter",
    "InputError",
    "Join",
    "LateError",
    "LatecomerError",
    "LatecomerWarning",
    "MaxTimestamp",
    "Operator",
    "Optimistic",
    "OptimisticSessions",
    "OptimisticWindows",
    "OrderSensitiveError",
    "Ordered",
    "PassThrough",
    "Pattern",
    "Period",
    "Released",
    "Reorder",
    "Result",
    "ScanFunction",
    "ScanQuery",
    "SessionWindow",
    "Slack",
    "SlackGate",
    "SlackTuner",
    "StateError",
    "Step",
    "TcpLike",
    "Tiers",
    "TimeTravel",
    "CustomHoles",
    "Anywhere",
    "Window",
    "advise",
    "compare",
    "consolidate",
    "control",
    "count",
    "count_distinct",
    "custom",
    "disordered",
    "exponential_average",
    "final_through",
    "first",
    "generate",
    "lag",
    "last",
    "last_value",
    "max",
    "mean",
    "min",
    "moving_average",
    "playback",
    "preset",
    "profile",
    "quantile",
    "read",
    "read_counters",
    "read_sources",
    "register_playback",
    "row_number",
    "running_count",
    "running_max",
    "running_min",
    "running_sum",
    "session",
    "session_id",
    "ship",
    "stddev",
    "sum",
    "to_html",
    "top_k",
    "variance",
    "window_function",
]

# Names are imported when they are first used: Spark's workers and the command line start without what they don't need.
# After the colon, the name at home: aggregates are classes, called like Spark's functions.
_HOMES = {
    "AggregateFunction": "windows",
    "AggregateQuery": "spark.questions",
    "WindowAggregation": "windows",
    "App": "spark.questions",
    "Chain": "windows",
    "Controlled": "query_control",
    "Discard": "spark.sinks",
    "Enumerator": "timetravel",
    "Events": "spark.disordered",
    "Files": "spark.sinks",
    "FixedSlack": "slack",
    "Fold": "windows",
    "HeldError": "errors",
    "ImpatienceSorter": "sorter",
    "InputError": "errors",
    "Join": "windows",
    "LateError": "errors",
    "LatecomerError": "errors",
    "LatecomerWarning": "errors",
    "MaxTimestamp": "slack",
    "Operator": "windows",
    "Optimistic": "optimistic",
    "OptimisticSessions": "optimistic",
    "OptimisticWindows": "optimistic",
    "OrderSensitiveError": "errors",
    "Ordered": "tiers",
    "PassThrough": "basic",
    "Pattern": "windows",
    "Period": "timetravel",
    "Released": "sorter",
    "Reorder": "reorder",
    "Result": "spark.result",
    "ScanFunction": "windows",
    "ScanQuery": "spark.scanning",
    "SessionWindow": "windows",
    "Slack": "slack",
    "SlackGate": "slack",
    "SlackTuner": "slack",
    "StateError": "errors",
    "Step": "windows",
    "TcpLike": "slack",
    "Tiers": "tiers",
    "TimeTravel": "timetravel",
    "CustomHoles": "timetravel",
    "Anywhere": "timetravel",
    "Window": "windows",
    "advise": "advising",
    "compare": "comparison",
    "consolidate": "consolidated",
    "control": "query_control",
    "count": "windows:Count",
    "count_distinct": "windows:CountDistinct",
    "custom": "windows:Custom",
    "disordered": "spark.disordered",
    "exponential_average": "windows:ExponentialAverage",
    "final_through": "spark.counters",
    "first": "windows:First",
    "generate": "recordings",
    "lag": "windows:Lag",
    "last": "windows:Last",
    "last_value": "windows:LastValue",
    "max": "windows:Max",
    "mean": "windows:Mean",
    "min": "windows:Min",
    "moving_average": "windows:MovingAverage",
    "playback": "spark.playback",
    "preset": "recordings",
    "profile": "recordings",
    "quantile": "windows:Quantile",
    "read": "spark.lane_files",
    "read_counters": "spark.counters",
    "read_sources": "spark.counters",
    "register_playback": "spark.playback",
    "row_number": "windows:RowNumber",
    "running_count": "windows:RunningCount",
    "running_max": "windows:RunningMax",
    "running_min": "windows:RunningMin",
    "running_sum": "windows:RunningSum",
    "session": "spark.session",
    "session_id": "windows:SessionStart",
    "ship": "spark.shipping",
    "stddev": "windows:Stddev",
    "sum": "windows:Sum",
    "to_html": "report.html",
    "top_k": "windows:TopK",
    "variance": "windows:Variance",
    "window_function": "windows:WindowFunction",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'latecomer' has no attribute {name!r}")
    module, _, known_as = _HOMES[name].partition(":")
    with needed_for(f"lc.{name}"):
        home = import_module(f"latecomer.{module}")
    return getattr(home, known_as or name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
