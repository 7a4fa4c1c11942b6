"""What the terminal shows: two consoles and a line of progress."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from latecomer.errors import InputError, must

console = Console()
errors = Console(stderr=True)


@contextmanager
def working(what: str) -> Iterator[Callable[[str], None]]:
    """Say what is being done while it is being done."""
    with errors.status(what) as status:

        def tell(text: str) -> None:
            status.update(f"{what}: {text}")
            if not errors.is_terminal:
                errors.print(f"{what}: {text}", highlight=False)

        yield tell


@contextmanager
def stepping(what: str, steps: int) -> Iterator[Callable[[str], None]]:
    """A bar that moves on with each step that is told."""
    with counting(what, TimeElapsedColumn()) as tell:
        yield lambda text: tell(text, steps)


@contextmanager
def counting(what: str, clock: ProgressColumn | None = None) -> Iterator[Callable[[str, int], None]]:
    """A bar that moves on with each step that is told, with how many there are; and the time left."""
    clock = TimeRemainingColumn(elapsed_when_finished=True) if clock is None else clock
    texts = (TextColumn("{task.completed}/{task.total}"), clock, TextColumn("{task.description}"))
    with Progress(
        TextColumn(what), BarColumn(24), *texts, console=errors, transient=True, disable=not errors.is_terminal
    ) as bar:
        task = bar.add_task("", total=None)
        done = itertools.count()

        def tell(text: str, steps: int) -> None:
            bar.update(task, completed=next(done), total=steps, description=escape(text))
            if not errors.is_terminal:
                errors.print(f"{what}: {text}", highlight=False, markup=False)

        yield tell


def check_writable(path: Path | None, option: str = "--json") -> None:
    """Find out before the work, not after it, that a report cannot be written."""
    if path is not None and (path.is_dir() or not path.resolve().parent.is_dir()):
        raise InputError(must(option, "name a file in a folder that exists", str(path), "make the folder first"))
