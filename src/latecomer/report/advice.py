"""What to write in the query for a stream with this profile: tick, max_ahead and latency."""

from __future__ import annotations

from collections.abc import Iterator

from latecomer.disorder.profile import Ahead, Profile
from latecomer.report.curve import NO_WAIT_US, keeps
from latecomer.report.facts import Row
from latecomer.report.words import counted, duration, number, setting, share


def ahead_rows(profile: Profile) -> list[Row]:
    """The figures on events that are ahead of their arrival: name, value and what it says."""
    ahead = profile.ahead
    if ahead is None or not (ahead.events or ahead.set_aside):
        return []
    rows = [("ahead", number(ahead.events), f"events are ahead of their arrival, by up to {duration(ahead.most_us)}")]
    if ahead.max_ahead_us is not None:
        beyond = f"more are further ahead than {duration(ahead.max_ahead_us)}, and not measured"
        rows.append(("set aside", number(ahead.set_aside), beyond))
    return rows


def advice(profile: Profile) -> list[str]:
    """Sentences on what to write; none where there is nothing to write."""
    return [*_on_ahead(profile), *_on_query(profile), *_on_holes(profile)] if profile.events else []


def _on_holes(profile: Profile) -> Iterator[str]:
    if profile.hole_choice is None or profile.late == 0:
        return
    bound = setting(keeps(profile, 1.0).wait_us)
    code = f".timetravel('{bound}', {profile.hole_choice.code})"
    yield f"To repair results when late rows come: {code}; the bound is at least as long as all windows together."


def _on_ahead(profile: Profile) -> Iterator[str]:
    yield from on_ahead(profile.ahead)


def on_ahead(ahead: Ahead | None) -> Iterator[str]:
    """What to write for events that are ahead of their arrival."""
    if ahead is None or not ahead.events:
        return
    furthest = duration(ahead.most_us)
    moves = f"An event that is ahead moves the mark with it, and makes others late; here by up to {furthest}."
    if ahead.advised_aside == 0:
        yield f"{moves} max_ahead='{setting(ahead.advised_us)}' lets them all in and guards against worse."
    else:
        yield f"{moves} max_ahead='{setting(ahead.advised_us)}' sets {counted(ahead.advised_aside, 'event')} aside."


def _on_query(profile: Profile) -> Iterator[str]:
    if profile.late == 0:
        return
    point = keeps(profile, 0.99)
    if point.wait_us <= NO_WAIT_US:
        point = keeps(profile, 1.0)
    latency = f"latency='{setting(point.wait_us)}'"
    if profile.tick_us is None:
        yield f"In the query: {latency}, which keeps {share(point.share)} where every row comes in a tick of its own."
        return
    tick_us, shorter = profile.tick_us, ""
    if point.wait_us < tick_us:
        tick_us = point.wait_us
        shorter = " (a latency below the tick waits for no tick: measure again with that tick)"
    words = [f"tick='{setting(tick_us)}'", *_limit(profile), latency]
    yield f"In the query: {', '.join(words)}, which keeps {share(point.share)}{shorter}."


def _limit(profile: Profile) -> list[str]:
    if profile.ahead is None or profile.ahead.max_ahead_us is None:
        return []
    return [f"max_ahead='{setting(profile.ahead.max_ahead_us)}'"]
