"""What both screens say about a profile, in words: counts, measures, sources, holes."""

from __future__ import annotations

from latecomer.disorder.profile import Profile, SourceProfile
from latecomer.report.words import counted, duration, number, share

MOST_SOURCES = 8

Row = tuple[str, str, str]


def counts(profile: Profile) -> list[str]:
    """How many events, keys and sources there are."""
    found = [counted(profile.events, "event")]
    found += [counted(n, what) for n, what in ((profile.keys, "key"), (profile.sources, "source")) if n is not None]
    found += [f"{number(profile.quarantined)} more in quarantine"] if profile.quarantined else []
    return found + ([f"{counted(profile.cut, 'time')} cut to microseconds"] if profile.cut else [])


def measures(profile: Profile) -> list[Row]:
    """The four measures of the Impatience paper (section II): name, value and what it says."""
    events = profile.events
    pairs = share(profile.inversions / max(1, events * (events - 1) // 2))
    each = f"{events / max(1, profile.runs):,.1f}"
    rows = [
        ("inversions", profile.inversions, f"pairs in the wrong order: {pairs} of all pairs of events"),
        ("distance", profile.distance, "positions between the two events of the widest pair"),
        ("runs", profile.runs, f"stretches in order, each of {each} events on average"),
        ("interleaved", profile.interleaved, "the fewest sequences in order that make up the stream"),
    ]
    return [(name, number(value), meaning) for name, value, meaning in rows]


def worst(profile: Profile) -> list[SourceProfile]:
    """The sources with the highest mean lateness."""
    return sorted(profile.per_source, key=lambda source: -source.mean_lateness_us)[:MOST_SOURCES]


def sources_note(profile: Profile) -> str:
    """How many sources are not shown, and what silence means."""
    others = max(profile.sources or 0, len(profile.per_source)) - len(worst(profile))
    note = "Silence: the longest stretch without an event; at end: since the last one."
    return f"And {counted(others, 'other source')}. {note}" if others > 0 else note


def hole_rows(profile: Profile) -> list[Row]:
    """The figures on holes: name, value and what it says."""
    holes = profile.holes
    if holes is None:
        return []
    late = ("filled late", number(holes.filled_late), "readings came after a later one of their key")
    if holes.missing == 0:
        return [("missing", "0", "readings: no key has a gap"), late]
    keys = f"in {counted(holes.keys_with_gaps, 'key')}, the longest {duration(holes.longest_us)}"
    expected = profile.events + holes.missing
    return [
        ("missing", number(holes.missing), f"readings, {share(holes.missing / expected)} of those expected"),
        ("gaps", number(holes.gaps), keys),
        ("worst tenth", share(holes.in_worst_tenth), "of what is missing lies in the worst tenth of the keys"),
        late,
    ]
