"""Operators that know nothing of disorder: windows of time, and what is said of the events in them."""

from latecomer.windows.aggregates import AggregateFunction, Count, Mean, Stddev, Sum, Variance
from latecomer.windows.aggregation import WindowAggregation
from latecomer.windows.checks import as_aggregates
from latecomer.windows.collected import CountDistinct, Custom, Quantile, TopK, WindowFunction
from latecomer.windows.extremes import First, Last, Max, Min
from latecomer.windows.join import Join
from latecomer.windows.key_steps import KeyStep
from latecomer.windows.mapped import Mapped
from latecomer.windows.operators import Chain, Clocks, Operator, Step
from latecomer.windows.pattern import Pattern
from latecomer.windows.recent_rows import Lag, MovingAverage, SessionStart
from latecomer.windows.row_groups import Group
from latecomer.windows.scan import Scan
from latecomer.windows.scan_functions import (
    ExponentialAverage,
    LastValue,
    RowNumber,
    RunningCount,
    RunningMax,
    RunningMin,
    RunningSum,
    ScanFunction,
)
from latecomer.windows.user_fold import Fold
from latecomer.windows.window import WINDOW_COLUMNS, WINDOW_END, WINDOW_START, SessionWindow, Window

__all__ = [
    "ExponentialAverage",
    "Fold",
    "Group",
    "KeyStep",
    "Lag",
    "LastValue",
    "Mapped",
    "MovingAverage",
    "RowNumber",
    "RunningCount",
    "RunningMax",
    "RunningMin",
    "RunningSum",
    "Scan",
    "ScanFunction",
    "SessionStart",
    "WINDOW_COLUMNS",
    "WINDOW_END",
    "WINDOW_START",
    "AggregateFunction",
    "WindowAggregation",
    "Chain",
    "Clocks",
    "Count",
    "CountDistinct",
    "Custom",
    "First",
    "Join",
    "Last",
    "Max",
    "Mean",
    "Min",
    "Operator",
    "Pattern",
    "Quantile",
    "SessionWindow",
    "Stddev",
    "Step",
    "Sum",
    "TopK",
    "Variance",
    "Window",
    "WindowFunction",
    "as_aggregates",
]
