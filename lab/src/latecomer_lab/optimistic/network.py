"""Simulated time: nodes that do one thing after the other, and links that keep the order of what they carry.

Every node takes what comes to it in order of arrival. So what a task does to the node's own state can be done when its
packet arrives; only what it sends must wait for its end. A packet is one event, and there are no queues to keep.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from math import log
from random import Random
from typing import Any

LINK_US, JITTER_US = 500.0, 200.0

Take = Callable[[float, int, Any], None]  # the time, the node, and what came


class Network:
    """Events in order of time, the time until which each node is busy, and the last arrival on each link."""

    def __init__(self, nodes: int, seed: int) -> None:
        self._events: list[tuple[float, int, Take, int, Any]] = []
        self._number = count()
        self._draw = Random(seed).random
        self._busy_until_us = [0.0] * nodes
        self._last_us = [[0.0] * nodes for _ in range(nodes)]
        self.worked_us = [0.0] * nodes

    def at(self, time_us: float, take: Take, node: int, packet: Any) -> None:
        """Let something happen."""
        heappush(self._events, (time_us, next(self._number), take, node, packet))

    def send(self, leaves_us: float, sender: int, node: int, take: Take, packet: Any) -> None:
        """Send a packet; to itself a node sends at once, elsewhere over a link."""
        arrives_us = leaves_us
        if sender != node:
            last_us = self._last_us[sender]
            arrives_us += LINK_US - JITTER_US * log(1.0 - self._draw())
            if arrives_us < last_us[node]:
                arrives_us = last_us[node]
            last_us[node] = arrives_us
        heappush(self._events, (arrives_us, next(self._number), take, node, packet))

    def free_at(self, now_us: float, node: int) -> float:
        """When a node comes to what arrives now."""
        until_us = self._busy_until_us[node]
        return until_us if until_us > now_us else now_us

    def work(self, now_us: float, node: int, cost_us: float) -> float:
        """Let a node work on what arrived now: when it is done."""
        until_us = self._busy_until_us[node]
        done_us = (until_us if until_us > now_us else now_us) + cost_us
        self._busy_until_us[node] = done_us
        self.worked_us[node] += cost_us
        return done_us

    def run(self) -> None:
        """Let everything happen."""
        events = self._events
        while events:
            time_us, _, take, node, packet = heappop(events)
            take(time_us, node, packet)
