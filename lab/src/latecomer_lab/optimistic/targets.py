"""What is to be reached; of several seeds the worst counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from latecomer.report.shape import Target
from latecomer_lab.optimistic.cluster import CHEAP_MESSAGE_US, MESSAGE_US
from latecomer_lab.optimistic.figures import of_figure_9
from latecomer_lab.optimistic.trials import (
    BUFFERING,
    COMPARED_LOADS,
    FULL_LOAD,
    MANY,
    OPTIMISTIC,
    SOME,
    USUAL_LOAD,
    Measured,
)

MOST_RATIO, MOST_GROWTH = 1.1, 0.01
_BELOW, _ABOVE = 0.999, 1.001


def targets(found: Sequence[Measured]) -> Iterator[Target]:
    """All figures to reach."""
    yield from ratio_targets(list(of_figure_9(found)))
    for load in COMPARED_LOADS:
        quotients = times_buffering(found, MANY, f"load {load:g}", MESSAGE_US)
        name = f"{MANY} workers, load {load:g}: latency / buffering, largest"
        yield Target(name, round(max(quotients), 3), _BELOW, at_least=False)
    least = min(times_buffering(found, SOME, f"load {FULL_LOAD:g}", MESSAGE_US))
    yield Target(f"{SOME} workers, load 1: latency / buffering, least", round(least, 3), _ABOVE)
    least = min(times_buffering(found, MANY, f"load {USUAL_LOAD:g}", CHEAP_MESSAGE_US))
    name = f"{MANY} workers, load {USUAL_LOAD:g}, messages of 10 us: latency / buffering, least"
    yield Target(name, round(least, 3), _ABOVE)
    differ = sum(each.differ for each in found)
    yield Target("updates that are not those of the sequential index", differ, 0, at_least=False)


def ratio_targets(found: Sequence[Measured]) -> Iterator[Target]:
    """Figure 9: the ratio up to the usual load, and how it goes on with more workers."""
    usual = max(each.ratio for each in found if each.trial.load <= USUAL_LOAD)
    yield Target(f"ratio up to load {USUAL_LOAD:g}, largest", round(usual, 4), MOST_RATIO, at_least=False)
    name = f"ratio at a fixed rate, from 2 workers on, up to load {USUAL_LOAD:g}: largest growth"
    yield Target(name, round(largest_growth(found, USUAL_LOAD), 4), MOST_GROWTH, at_least=False)


def largest_growth(found: Sequence[Measured], most_load: float) -> float:
    """By how much the ratio grows at most when workers are added to two or more, at one rate and seed, up to a load."""
    lines: dict[tuple[float, int], list[Measured]] = {}
    for each in found:
        if each.trial.workers >= 2 and not each.trial.at.startswith("load"):
            lines.setdefault((each.trial.rate, each.trial.seed), []).append(each)
    return max(
        (
            more.ratio - less.ratio
            for line in lines.values()
            for less, more in combinations(sorted(line, key=lambda each: each.trial.workers), 2)
            if more.trial.load <= most_load
        ),
        default=0.0,
    )


def times_buffering(found: Sequence[Measured], workers: int, at: str, message_us: float) -> list[float]:
    """Latencies as parts of those with buffers, for each seed and percentile."""
    chosen = {
        (each.trial.model, each.trial.seed): each.latency_ms
        for each in found
        if (each.trial.workers, each.trial.at, each.trial.message_us) == (workers, at, message_us)
    }
    return [
        ours_ms / theirs_ms
        for model, seed in chosen
        if model == OPTIMISTIC
        for ours_ms, theirs_ms in zip(chosen[model, seed], chosen[BUFFERING, seed], strict=True)
    ]
