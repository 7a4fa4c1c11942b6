"""A disorder profile on the terminal: tables without boxes, and the completeness curve in block characters."""

from __future__ import annotations

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from latecomer.disorder.profile import Profile, SourceProfile
from latecomer.report.advice import advice, ahead_rows
from latecomer.report.curve import Curve, Tick, curve, handful, lost, verdict, wait_words
from latecomer.report.facts import Row, counts, hole_rows, measures, sources_note, worst
from latecomer.report.words import counted, duration, label, number, share, short_number, span

_ROWS, _WIDEST, _MARGIN = 10, 78, 11
_EIGHTHS = " ▁▂▃▄▅▆▇█"


def show_profile(profile: Profile, console: Console) -> None:
    """Print a profile: headline, disorder, curve, sources, holes, and what it means."""
    _headline(profile, console)
    if profile.events:
        ticks = "" if profile.tick_us is None else f", in ticks of {duration(profile.tick_us)}"
        late = ("late", number(profile.late), f"{share(profile.late_share)} of the events{ticks}")
        _show(_meanings("disorder", [late, *measures(profile)]), console)
        if profile.late:
            _show(_lateness(profile), console)
        _show(_waits(profile), console)
        _show_curve(profile, console)
        _show_sources(profile, console)
        _show_holes(profile, console)
    if ahead_rows(profile):
        _show(_meanings("ahead of arrival", ahead_rows(profile)), console)
    console.print()
    for sentence in advice(profile):
        console.print(sentence, highlight=False, markup=False)
    console.print(verdict(profile), style="bold", highlight=False, markup=False)


def _show(table: Table, console: Console) -> None:
    console.print()
    console.print(table, highlight=False)


def _safe(text: str | None, console: Console) -> str:
    """A name that the console can write."""
    return label(text).encode(console.encoding, "replace").decode(console.encoding)


def _headline(profile: Profile, console: Console) -> None:
    console.print()
    console.print(Text(_safe(profile.name, console), style="bold"), no_wrap=True, overflow="ellipsis")
    console.print(", ".join(counts(profile)), highlight=False)
    if profile.events:
        console.print(span(profile.first_ts_us, profile.last_ts_us), highlight=False)


def _table(title: str, *headings: str) -> Table:
    """A table without a box; a heading that ends in > is of figures."""
    shown = any(heading.strip(">") for heading in headings)
    table = Table(title=Text(title, no_wrap=True), title_justify="left", title_style="bold cyan", box=None)
    table.pad_edge, table.show_header, table.min_width = False, shown, len(title)
    for heading in headings:
        right = heading.endswith(">")
        table.add_column(heading.rstrip(">"), justify="right" if right else "left", no_wrap=right, header_style="dim")
    return table


def _meanings(title: str, rows: list[Row]) -> Table:
    """Names, values and what they say."""
    table = _table(title, "", ">", "")
    for name, value, meaning in rows:
        table.add_row(name, f"[bold]{value}[/]", f"[dim]{meaning}[/]")
    return table


def _lateness(profile: Profile) -> Table:
    names = ("p50", "p90", "p99", "p99.9", "max")
    table = _table("lateness of the late events", *(f"{name}>" for name in names))
    table.add_row(*(duration(profile.lateness.get(name, 0)) for name in names))
    return table


def _waits(profile: Profile) -> Table:
    table = _table("what a wait keeps", "wait>", "keeps>", "loses>")
    for point in handful(profile):
        count = counted(lost(profile, point.share), "event")
        table.add_row(wait_words(point.wait_us), f"[bold]{share(point.share)}[/]", count)
    return table


def _show_curve(profile: Profile, console: Console) -> None:
    drawn = curve(profile)
    if drawn is None:
        return
    plain = console.options.ascii_only
    console.print()
    for line in plot(drawn, min(console.width, _WIDEST), plain=plain):
        console.print(Text.assemble((line[:_MARGIN], "dim"), (line[_MARGIN:], "cyan")))


def plot(drawn: Curve, width: int, *, plain: bool = False) -> list[str]:
    """The curve as lines of text: filled is kept, empty is lost."""
    columns = width - _MARGIN
    across = np.linspace(drawn.left, drawn.right, columns)
    height = np.interp(across, [point.x for point in drawn.points], [point.y for point in drawn.points])
    eighths = np.maximum(1, (height - drawn.bottom) / (drawn.top - drawn.bottom) * _ROWS * 8).astype(int)
    body = ["".join(_block(int(level) - 8 * row, plain=plain) for level in eighths) for row in reversed(range(_ROWS))]
    body.append(("-" if plain else "─") * columns)
    labels = _beside(drawn)
    edges = ("|" if plain else "│") * _ROWS + ("+" if plain else "└")
    lines = [f"{labels.get(row, ''):>{_MARGIN - 2}} {edges[row]}{line}".rstrip() for row, line in enumerate(body)]
    return [*lines, _below(drawn.x_ticks(12 * (drawn.right - drawn.left) / columns), drawn, columns)]


def _block(eighths: int, *, plain: bool) -> str:
    filled = max(0, min(8, eighths))
    return (" " if filled < 4 else "#") if plain else _EIGHTHS[filled]


def _beside(drawn: Curve) -> dict[int, str]:
    """Which line of the plot bears which label, the bottom being the axis; 100 % first."""
    labels: dict[int, str] = {}
    for y, text in (drawn.y_ticks()[-1], *drawn.y_ticks()):
        row = _ROWS - round((y - drawn.bottom) / (drawn.top - drawn.bottom) * _ROWS)
        labels.setdefault(row, text)
    return labels


def _below(ticks: list[Tick], drawn: Curve, columns: int) -> str:
    line = [" "] * (_MARGIN + columns)
    for x, text in ticks:
        middle = _MARGIN + (x - drawn.left) / (drawn.right - drawn.left) * (columns - 1)
        start = max(_MARGIN, min(len(line) - len(text), round(middle - len(text) / 2)))
        line[start : start + len(text)] = text
    return "".join(line).rstrip()


def _show_sources(profile: Profile, console: Console) -> None:
    if len(profile.per_source) < 2:
        return
    headings = ("events", "late", "mean", "max", "silence", "at end")
    rows = [_figures(source) for source in worst(profile)]
    taken = sum(2 + max(map(len, column)) for column in zip(headings, *rows, strict=True))
    table = _table("sources, the latest first", "source", *(f"{heading}>" for heading in headings))
    for source, figures in zip(worst(profile), rows, strict=True):
        name = Text(_safe(source.name, console))
        name.truncate(max(8, console.width - taken), overflow="ellipsis")
        table.add_row(name, *figures)
    _show(table, console)
    console.print(f"[dim]{sources_note(profile)}[/]", highlight=False)


def _figures(source: SourceProfile) -> list[str]:
    """The figures of a source; none is wider than 11 letters, so that there is room for its name."""
    times = (source.mean_lateness_us, source.max_lateness_us, source.longest_silence_us, source.silent_at_end_us)
    events = number(source.events) if source.events < 10**9 else short_number(source.events)
    return [events, share(source.late / max(1, source.events)), *map(duration, times)]


def _show_holes(profile: Profile, console: Console) -> None:
    if profile.holes is not None:
        _show(_meanings(f"holes (a reading every {duration(profile.holes.period_us)})", hole_rows(profile)), console)
