"""Slack-ScaleGate: rows of several sources in order, as far as a deadline allows it."""

from latecomer.slack.controller import Controller, Goal, Policy
from latecomer.slack.gate import SlackGate
from latecomer.slack.latency_graph import GraphEdge, LatencyGraph
from latecomer.slack.observation import History, Observation
from latecomer.slack.policies import FixedSlack, MaxTimestamp, TcpLike
from latecomer.slack.slack import Slack
from latecomer.slack.tuner import SlackTuner

__all__ = [
    "Controller",
    "FixedSlack",
    "Goal",
    "GraphEdge",
    "History",
    "LatencyGraph",
    "MaxTimestamp",
    "Observation",
    "Policy",
    "Slack",
    "SlackGate",
    "SlackTuner",
    "TcpLike",
]
