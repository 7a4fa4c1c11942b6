"""The paper's statements on its figures, and beside each what the simulation says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf

from latecomer_lab.optimistic.buffering_model import DOCUMENT_BUFFER, WORD_BUFFER
from latecomer_lab.optimistic.cluster import MESSAGE_US
from latecomer_lab.optimistic.figures import Point, both_models, compared, of_figure_9
from latecomer_lab.optimistic.optimistic_model import BARRIER
from latecomer_lab.optimistic.targets import MOST_GROWTH, largest_growth
from latecomer_lab.optimistic.trials import MANY, SOME, USUAL_LOAD, Measured
from latecomer_lab.statements import Statement


def statements(found: Sequence[Measured]) -> list[Statement]:
    """All of them."""
    return [*_ratio(list(of_figure_9(found))), *_latency(found)]


def _ratio(found: Sequence[Measured]) -> Iterator[Statement]:
    usual = max((each for each in found if each.trial.load <= USUAL_LOAD), key=lambda each: each.ratio)
    yield Statement(
        "Figure 9",
        "Under non-extreme load the overhead is under 10 % for all numbers of workers.",
        f"Up to load {USUAL_LOAD:g} it is {_extra(usual)} at most, with {usual.trial.workers} workers.",
    )
    at_load = [each for each in found if each.trial.at == f"load {USUAL_LOAD:g}" and each.trial.workers > 1]
    few, many = (
        max((each for each in at_load if each.trial.workers == workers), key=lambda each: each.ratio)
        for workers in (end(each.trial.workers for each in at_load) for end in (min, max))
    )
    yield Statement(
        "Figure 9",
        "The ratio does not increase with the number of nodes.",
        f"{_growth(found)} At a fixed load it does grow: at load {USUAL_LOAD:g} from {_extra(few)} with "
        f"{few.trial.workers} workers to {_extra(many)} with {many.trial.workers}, since documents then come faster.",
    )
    peak = max(found, key=lambda each: each.ratio)
    yield Statement(
        "Figure 9",
        "The ratio is largest where the rate is high and nodes are few.",
        f"So it is: {peak.ratio:.1f} with {peak.trial.workers} workers at {peak.trial.rate:.0f} documents a second "
        f"(load {peak.trial.load:.2f}). What is done twice makes others late, and the backlog feeds itself.",
    )


def _growth(found: Sequence[Measured]) -> str:
    usual, above = largest_growth(found, USUAL_LOAD), largest_growth(found, inf)
    text = (
        f"At a fixed rate and up to load {USUAL_LOAD:g}, from two workers on, it grows by {100 * usual:.2f} points at "
        "most."
    )
    if above > MOST_GROWTH:
        text += f" Above that load chance decides which runs fall over: there it grows by up to {above:.1f}."
    return text


def _extra(each: Measured) -> str:
    return f"{100 * (each.ratio - 1):.1f} %"


def _latency(found: Sequence[Measured]) -> Iterator[Statement]:
    yield Statement(
        "Figure 10",
        f"With {MANY} nodes FlameStream has lower latency than Flink, even under high load.",
        f"{_leads(found, MANY)} Where documents are few, buffering is ahead by the way to the acker and back."
        f"{_falls_over(found)}",
    )
    both = both_models(found, MANY, MESSAGE_US)
    usual = next(pair for pair in both if pair[0].trial.at == f"load {USUAL_LOAD:g}")
    yield Statement(
        "Figure 11",
        "Items wait longer in Flink's buffer than in FlameStream's barrier.",
        f"{_waits(*both[0])} {_waits(*usual)}",
    )
    ours, theirs = compared(found, SOME, MESSAGE_US)[-1]
    times = min(one / other for one, other in zip(ours.latency_ms, theirs.latency_ms, strict=True))
    yield Statement(
        "Figure 12",
        f"With {SOME} nodes Flink is better under extreme load, FlameStream under non-extreme load.",
        f"At load {ours.load:.2g} optimistic latencies are {times:.0f} times those with buffers or more. "
        f"{_leads(found, SOME)}",
    )


def _leads(found: Sequence[Measured], workers: int) -> str:
    """Where all four percentiles are lower than with buffers."""
    both = compared(found, workers, MESSAGE_US)
    ahead = [ours.rate for ours, theirs in both if _is_below(ours, theirs)]
    if not ahead:
        return f"With {workers} workers no rate has all four percentiles lower than with buffers."
    rates = ", ".join(f"{rate:.0f}" for rate in ahead)
    tried = f"{both[0][0].rate:.0f} to {both[-1][0].rate:.0f}"
    return f"All four percentiles are lower than with buffers at {rates} documents a second (tried: {tried})."


def _falls_over(found: Sequence[Measured]) -> str:
    ours, theirs = compared(found, MANY, MESSAGE_US)[-1]
    if ours.latency_ms[0] < theirs.latency_ms[0]:
        return ""
    return (
        f" At load {ours.load:.2g} the backlog feeds itself: half of all documents take longer than "
        f"{ours.latency_ms[0]:,.0f} ms, with buffers {theirs.latency_ms[0]:,.0f} ms."
    )


def _is_below(ours: Point, theirs: Point) -> bool:
    return all(one < other for one, other in zip(ours.latency_ms, theirs.latency_ms, strict=True))


def _waits(ours: Point, theirs: Point) -> str:
    barrier, words, documents = (
        point.waits_ms(where)[0] for point, where in ((ours, BARRIER), (theirs, WORD_BUFFER), (theirs, DOCUMENT_BUFFER))
    )
    return (
        f"At {ours.rate:.0f} documents a second the median is {barrier:.1f} ms in the barrier, {words:.1f} and "
        f"{documents:.1f} ms in the two buffers."
    )
