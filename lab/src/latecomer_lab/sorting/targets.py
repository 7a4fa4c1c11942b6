"""What is to be reached: the paper's figures for the paper's algorithm, and a lead over all for the product."""

from __future__ import annotations

from collections.abc import Iterable

from latecomer.report.shape import Target
from latecomer_lab.sorting.cells import Cell
from latecomer_lab.sorting.competitors import IMPATIENCE, NO_BOTH, NO_HUFFMAN, PRODUCT, Kind
from latecomer_lab.sorting.figures import Point
from latecomer_lab.sorting.operators import Gain

_PAPER = (Kind.PAPER,)
_ANY = (Kind.PAPER, Kind.MODERN)
_LEAST = 1.3  # section VI-B2, on every data set
_MOST = {"synthetic": 2.1, "cloudlog": 4.4, "androidlog": 7.9}
_OFFLINE = {"cloudlog": 1.36, "androidlog": 1.25}  # section VI-B1
_HUFFMAN, _SPECULATION = 1.30, 1.15
_GAINS = {"selection": 7.0, "projection": 1.5, "window": 2.4}  # section VI-C
_OFTEN, _NEVER_BELOW = 10_000, 0.95


def targets(cells: list[Cell], points: list[Point], gains: list[Gain]) -> list[Target]:
    """All figures to reach for what was measured."""
    found: list[Target] = []
    for stream in dict.fromkeys(cell.stream for cell in cells):
        found += _against_paper(stream, [cell for cell in cells if cell.stream == stream])
    found += _switches([cell for cell in cells if cell.every is None] + [point.cell for point in points])
    found += _against_all(cells)
    for operator, wanted in _GAINS.items():
        most = max(gain.speedup for gain in gains if gain.operator == operator)
        found.append(_target(f"{operator} before the sort, largest gain", most, wanted))
    return found


def _against_paper(stream: str, cells: list[Cell]) -> Iterable[Target]:
    online = [cell.lead(IMPATIENCE, _PAPER) for cell in cells if cell.every is not None]
    yield _target(f"impatience / paper's best, {stream} online, least", min(online), _LEAST)
    yield _target(f"impatience / paper's best, {stream} online, most", max(online), _MOST[stream])
    for cell in cells:
        if cell.every is None and stream in _OFFLINE:
            lead = cell.lead(IMPATIENCE, _PAPER)
            yield _target(f"impatience / paper's best, {stream} offline", lead, _OFFLINE[stream])


def _switches(offline: list[Cell]) -> Iterable[Target]:
    huffman = max(cell.ratio(IMPATIENCE, NO_HUFFMAN) for cell in offline)
    speculation = max(cell.ratio(NO_HUFFMAN, NO_BOTH) for cell in offline)
    yield _target("Huffman merge (HM), largest gain", huffman, _HUFFMAN)
    yield _target("speculative run selection (SRS), largest gain", speculation, _SPECULATION)


def _against_all(cells: list[Cell]) -> Iterable[Target]:
    for stream in ("cloudlog", "androidlog"):
        often = [cell for cell in cells if cell.stream == stream and cell.every and cell.every <= _OFTEN]
        if often:
            least = min(cell.lead(PRODUCT, _ANY) for cell in often)
            yield _target(f"latecomer / best of any, {stream} to {_OFTEN:,}, least", least, _LEAST)
    least = min(cell.lead(PRODUCT, _ANY) for cell in cells)
    yield _target("latecomer / best of any, everywhere, least", least, _NEVER_BELOW)


def _target(name: str, value: float, wanted: float) -> Target:
    return Target(name, round(value, 2), wanted)
