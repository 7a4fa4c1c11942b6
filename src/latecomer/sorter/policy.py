"""What to do with an event that comes too late."""

from __future__ import annotations

from enum import StrEnum

from latecomer.errors import InputError, LateError, must


class Late(StrEnum):
    """What happens to an event whose time the last punctuation has passed."""

    SIDE = "side"  # it goes to the lane `late`
    DROP = "drop"  # it is counted and gone
    ADJUST = "adjust"  # it is moved to the first time that is not too late
    RAISE = "raise"  # the query stops


def as_policy(value: str) -> Late:
    """Read a policy's name."""
    try:
        return Late(value)
    except ValueError:
        names = ", ".join(f"'{policy}'" for policy in Late)
        raise InputError(must("late", f"be one of {names}", value, "choose one")) from None


def stop_at(count: int, ts_us: int) -> LateError:
    """The error for the policy RAISE."""
    rule = "come before the punctuation has passed their times"
    advice = "raise the latency, or choose late='side'"
    return LateError(must("events", rule, f"{count} too late, the first at {ts_us} us", advice))
