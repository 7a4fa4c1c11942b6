"""The kernel of a user's fold as text: a loop over the rows of every stretch around what is done with a row."""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa

from latecomer.windows.fold_compiler.names import Input, Known
from latecomer.windows.fold_compiler.values import Kind

_KERNEL = """\
def kernel({arguments}):
    m = 0
    w = 0
    for stretch in range(len(starts) - 1):
        first = m
        bad = False
{begin}
        for i in range(starts[stretch], starts[stretch + 1]):
            if bad:
                break
            if w < len(wanted) and wanted[w] == i:
{before}
                w += 1
{body}
        if bad:
            redo[stretch] = True
            m = first
            while w < len(wanted) and wanted[w] < starts[stretch + 1]:
                w += 1
{after}
    return m
"""


class Slot(NamedTuple):
    """A number of the state or of an output; nullable: it may be None."""

    type: pa.DataType
    nullable: bool = False


class Program(NamedTuple):
    """A kernel: its text, what it reads, its states and outputs, and how many outputs a row has at most."""

    text: str
    inputs: tuple[Input, ...]
    state: tuple[Slot, ...]
    outputs: tuple[Slot, ...]
    most: int


def arguments_of(known: Known, inputs: int, state: tuple[Slot, ...], outputs: tuple[Slot, ...]) -> list[str]:
    """The arguments of a kernel: where rows are, what is read, states before and after, and what is written."""
    numbers = [name for name, kind in known.free.items() if isinstance(kind, Kind)]
    arrays = [f"{letter}{each}" for letter in ("b", "f", "a") for each in _variables(state)]
    read = [f"c{place}" for place in range(inputs)]
    written = [f"o{each}" for each in _variables(outputs)]
    return ["starts", "wanted", *read, *(f"p_{name}" for name in numbers), *arrays, *written, "owner", "redo"]


def _variables(slots: tuple[Slot, ...]) -> list[str]:
    nulls = (f"n{place}" for place, slot in enumerate(slots) if slot.nullable)
    return [*(str(place) for place in range(len(slots))), *nulls]


def kernel_text(body: list[str], arguments: list[str], state: tuple[Slot, ...]) -> str:
    """The text of a kernel around what it does with a row."""
    parts = {
        "begin": [f"s{each} = b{each}[stretch]" for each in _variables(state)],
        "before": [f"f{each}[w] = s{each}" for each in _variables(state)],
        "after": [f"a{each}[stretch] = s{each}" for each in _variables(state)],
        "body": body,
    }
    depths = {"begin": 2, "before": 4, "after": 2, "body": 3}
    text = {name: "\n".join("    " * depths[name] + line for line in lines) for name, lines in parts.items()}
    return _KERNEL.format(arguments=", ".join(arguments), **text)
