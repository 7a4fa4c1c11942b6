"""What goes wrong, in one form: `<where> must <rule>; got <value>; <what to do>`."""

from __future__ import annotations


class LatecomerError(Exception):
    """The base of every error this package raises on purpose."""


class InputError(LatecomerError, ValueError):
    """An argument, a column or a setting is not usable; raised before a query starts."""


class OrderSensitiveError(InputError, AttributeError):
    """A call that needs events in order was made on a disordered stream."""


class StateError(LatecomerError):
    """Stored state does not belong to the query that wants to read it."""


class HeldError(LatecomerError):
    """More events or partial results would be held than `max_held` allows."""


class LateError(LatecomerError):
    """An event came too late, and the user wants to stop then."""


class LatecomerWarning(UserWarning):
    """Something works, but not as the user probably wants."""


def error_text(error: BaseException) -> str:
    """An error's kind and what it says.

    >>> error_text(ValueError("no amount")), error_text(KeyError())
    ('ValueError: no amount', 'KeyError')
    """
    return f"{type(error).__name__}: {error}".removesuffix(": ")


def must(where: str, rule: str, got: object, advice: str) -> str:
    """Write a message in the house form.

    >>> must("latency", "have a unit", "10", "write '10 seconds'")
    "latency must have a unit; got '10'; write '10 seconds'"
    """
    return f"{where} must {rule}; got {got!r}; {advice}"
