"""Commands that other packages bring: entry points of the group `latecomer.commands`, added under their names.

An entry point is a typer app or a function. The benches and the papers' experiments are such commands, of the package
latecomer-lab; where it is missing, their names say so in one sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib.metadata import EntryPoint, entry_points

import typer

from latecomer.errors import InputError, LatecomerError, error_text, must

GROUP = "latecomer.commands"
LAB = {"bench": "Measure speed.", "reproduce": "Repeat the experiments of the papers."}
_ANYTHING = {"allow_extra_args": True, "ignore_unknown_options": True, "allow_interspersed_args": False}


def add_commands(app: typer.Typer, found: Iterable[EntryPoint] | None = None) -> None:
    """Add the commands of installed packages; those of latecomer-lab say how to get them where it is missing."""
    points = {point.name: point for point in (entry_points(group=GROUP) if found is None else found)}
    for name in sorted({*points, *LAB}):
        if name in points:
            _add(app, points[name])
        else:
            _add_refusal(app, name, f"{LAB[name]} Comes with the package latecomer-lab.", _missing(name))


def _add(app: typer.Typer, point: EntryPoint) -> None:
    """A package that cannot be loaded must not take the other commands with it."""
    try:
        command = point.load()
    except Exception as error:
        _add_refusal(app, point.name, f"Cannot be loaded from {point.value}.", _broken(point, error))
        return
    if isinstance(command, typer.Typer):
        app.add_typer(command, name=point.name)
    else:
        app.command(point.name)(command)


def _add_refusal(app: typer.Typer, name: str, help: str, make: Callable[[], LatecomerError]) -> None:
    """A command that takes anything, `--help` too, and says why there is nothing behind it."""

    def refuse() -> None:
        raise make()

    app.command(name, help=help, context_settings=_ANYTHING, add_help_option=False)(refuse)


def _missing(name: str) -> Callable[[], LatecomerError]:
    text = (
        f"`latecomer {name}` must come from the package latecomer-lab, which is not installed; "
        "run: pip install latecomer-lab (from a checkout: pip install ./lab)"
    )
    return lambda: InputError(text)


def _broken(point: EntryPoint, error: Exception) -> Callable[[], LatecomerError]:
    where = f"`latecomer {point.name}`"
    got = error_text(error)
    return lambda: LatecomerError(must(where, f"load from {point.value}", got, "install its package again"))
