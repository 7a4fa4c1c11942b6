"""`latecomer control`: what can be changed in a running query, and changing it."""

from __future__ import annotations

from typing import Annotated

import typer

from latecomer.cli.screen import console
from latecomer.errors import InputError, must


def control(
    checkpoint: Annotated[str, typer.Argument(help="The checkpoint that the query was started with.")],
    values: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Change it, e.g. latency='5 minutes'."),
    ] = None,
    stage: Annotated[str | None, typer.Option(help="Of several stages, the one with the setting.")] = None,
) -> None:
    """Show or change the settings of a running query, without a new checkpoint."""
    from latecomer.query_control import control as controlled

    query = controlled(checkpoint, stage=stage)
    wanted = dict(_pair(text) for text in values or [])
    if wanted:
        query.set(**wanted)
    for name, value in query.values().items():
        shown = f"{value:,} us" if isinstance(value, int) else value
        console.print(f"{name:<24} {shown}", highlight=False)
    if wanted:
        console.print("In force from the query's next micro-batch on.", highlight=False)


def _pair(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not name or not value:
        raise InputError(must("--set", "be NAME=VALUE", text, "e.g. --set latency='5 minutes'"))
    return name.strip(), value.strip()
