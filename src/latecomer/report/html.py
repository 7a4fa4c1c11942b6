"""A disorder profile as one HTML file: no scripts, nothing fetched, light and dark, for a phone and for a desk."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from jinja2 import Environment
from markupsafe import Markup

from latecomer.disorder.profile import Profile, SourceProfile
from latecomer.extras import needed_for
from latecomer.report.advice import advice, ahead_rows
from latecomer.report.curve import handful, keeps, lost, verdict, wait_words
from latecomer.report.facts import Row, counts, hole_rows, measures, sources_note, worst
from latecomer.report.page import PAGE, STYLE
from latecomer.report.words import counted, duration, label, number, share, span

_WORDS = (
    "Lateness is the latest event time seen before an event arrives, minus the event's own time. An event is late when "
    "that is more than zero. A wait of L keeps the events whose lateness is below L. All times are UTC."
)
_READ_CURVE = (
    "If every result waits this long before it is given out, this share of the events is in it. From 90 % upwards each "
    "line loses ten times fewer events than the one below; the topmost is 100 %. The dots are quantiles of the late "
    "events: half of them are later than p50, one in a hundred is later than p99."
)


def write_html(profile: Profile, path: Path) -> None:
    """Write the report of a profile as one file."""
    path.write_text(to_html(profile), encoding="utf-8")


def to_html(profile: Profile) -> str:
    """The report of a profile as one page."""
    environment = Environment(autoescape=True, trim_blocks=True, finalize=_together)
    fields = {
        "style": Markup(STYLE),
        "name": label(profile.name),
        "facts": _facts(profile),
        "big": _big(profile),
        "verdict": verdict(profile),
        "advice": advice(profile),
        "words": _WORDS,
    }
    if profile.events:
        fields |= _tables(profile)
    if profile.events > 1:
        fields |= _pictures(profile)
    return environment.from_string(PAGE).render(fields)


def _together(value: Any) -> Any:
    """Keep a number and its unit on one line."""
    return (
        value
        if isinstance(value, Markup) or not isinstance(value, str)
        else re.sub(r"(?<=\d) (?=[\w%])", "\xa0", value)
    )


def _facts(profile: Profile) -> list[str]:
    """Counts and time, in pieces that stay on one line."""
    times = span(profile.first_ts_us, profile.last_ts_us).split(" to ") if profile.events else []
    pieces = [f"{piece}," for piece in counts(profile)] + [f"{piece} to" for piece in times[:-1]] + times[-1:]
    return [*pieces[:-1], pieces[-1].rstrip(",")]


def _big(profile: Profile) -> list[tuple[str, str, str]]:
    """The three figures that come first."""
    if not profile.events:
        return [("events", "0", "nothing to measure")]
    covered = duration(profile.last_ts_us - profile.first_ts_us)
    return [
        ("events", number(profile.events), f"over {covered} of event time"),
        ("late", share(profile.late_share), counted(profile.late, "event")),
        ("wait that keeps 99 %", *_wait_figure(profile)),
    ]


def _wait_figure(profile: Profile) -> tuple[str, str]:
    point, whole = keeps(profile, 0.99), keeps(profile, 1.0)
    figure = wait_words(point.wait_us)
    if whole == point:
        return figure, f"keeps {share(point.share)}"
    return figure, f"keeps {share(point.share)}; all: {wait_words(whole.wait_us)}"


def _pictures(profile: Profile) -> dict[str, Any]:
    """Both pictures in two sizes, and what to say about them."""
    with needed_for("lc.to_html"):
        from latecomer.report.charts import NARROW, WIDE, curve_svg, picture_svg  # Vega takes a while to load

    drawn = [Markup(picture_svg(profile, size)) for size in (WIDE, NARROW)]
    kept = [curve_svg(profile, size) for size in (WIDE, NARROW)]
    by = "arrival time" if profile.picture.arrival_us else "order of arrival"
    most = int(profile.picture.count.max(initial=0))
    return {
        "picture": drawn,
        "picture_alt": f"Event time against {by}: {share(profile.late_share)} of the events lie below the line.",
        "read_picture": _read_picture(by),
        "late": profile.late,
        "densest": "few to many events in a cell (logarithmic)" if most > 1 else "",
        "curve": [Markup(svg) for svg in kept if svg is not None],
        "curve_alt": f"Share of events kept against the wait. {verdict(profile)}",
        "read_curve": _READ_CURVE,
    }


def _read_picture(by: str) -> str:
    return (
        f"Events from left to right by {by}, from bottom to top by their own time. A stream in order is one rising "
        "line. What lies below the line came late: a thin spike is a batch from the past that arrived all at once, and "
        "its depth is how late it was."
    )


def _tables(profile: Profile) -> dict[str, Any]:
    sources = profile.per_source if len(profile.per_source) > 1 else []
    waits = [
        (wait_words(point.wait_us), share(point.share), counted(lost(profile, point.share), "event"))
        for point in handful(profile)
    ]
    holes = profile.holes
    return {
        "waits": waits,
        "measures": _measures(profile),
        "sources": _sources(profile) if sources else [],
        "read_sources": f"The sources by their mean lateness, worst first. {sources_note(profile)}",
        "holes": hole_rows(profile),
        "read_holes": ""
        if holes is None
        else f"Each key is expected to send a reading every {duration(holes.period_us)}.",
    }


def _measures(profile: Profile) -> list[Row]:
    quantiles = profile.lateness.items() if profile.late else ()
    rows = measures(profile) + ahead_rows(profile)
    return rows + [(f"lateness {key}", duration(us), _quantile_note(key)) for key, us in quantiles]


def _quantile_note(key: str) -> str:
    return "the latest event" if key == "max" else f"{key.removeprefix('p')} % of the late events are not later"


def _sources(profile: Profile) -> list[dict[str, str]]:
    rows = worst(profile)
    most = max(1, rows[0].mean_lateness_us)
    return [_source(source, 100 * source.mean_lateness_us / most) for source in rows]


def _source(source: SourceProfile, part: float) -> dict[str, str]:
    return {
        "name": label(source.name),
        "mean": duration(source.mean_lateness_us),
        "part": f"{part:.1f}",
        "longest": duration(source.max_lateness_us),
        "late": share(source.late / max(1, source.events)),
        "events": number(source.events),
        "silence": duration(source.longest_silence_us),
        "at_end": duration(source.silent_at_end_us),
    }
