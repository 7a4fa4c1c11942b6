"""What Spark says when a query or a task fails, in one sentence of ours; what Spark said is its cause.

Spark passes errors of Python on as text: the last traceback in it says whose error it was. Our own come back as they
were raised; one in a function of the user's names the function and its line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path, PurePath
from typing import NamedTuple, cast

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException, StreamingQueryException

from latecomer import errors
from latecomer.errors import InputError, LatecomerError, must

_PACKAGE = Path(__file__).parents[1]
_BEHIND = "what Spark says is the cause of this error"
_TRACEBACK = "Traceback (most recent call last):\n"
_OURS = re.compile(r"latecomer\.errors\.(\w+): ([^\n]* must [^\n]*)")
_FRAME = re.compile(r'^ +File "([^"]+)", line (\d+), in (\S+)', re.MULTILINE)
_LIBRARIES = re.compile(r"/(?:(?:site|dist)-packages|pyspark\.zip|python/pyspark|lib/python[\d.]+)/|^<frozen")


def readable(error: Exception) -> Exception:
    """Our own message, without what Spark puts around it; else Spark's."""
    found = re.search(r"InputError: (.* must .*)", str(error))
    return error if found is None else InputError(found[1].strip())


@contextmanager
def reading(what: str) -> Iterator[None]:
    """While Spark reads `what`: a failure is one line, with its deepest cause."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        ours = readable(error)
        if isinstance(ours, LatecomerError):
            raise ours from None
        advice = "are the files whole?"
        raise LatecomerError(must("Spark", f"read {what} to its end", deepest(error), advice)) from error


def deepest(error: Exception) -> str:
    """The innermost cause that Spark names, in one line."""
    text = str(error).partition("=== Streaming Query ===")[0].rpartition("terminated with exception: ")[2]
    behind = getattr(error, "_stackTrace", None) or ""  # of the JVM; what is shown of it leaves causes out
    causes = re.findall(r"(?:Caused by: |: )([\w.$]+(?:Exception|Error): [^\n]*)", f"{text}\n{behind}")
    return _plain(causes[-1] if causes else text.strip().split("\n", 1)[0])


def _plain(line: str) -> str:
    return re.sub(r"( SQLSTATE: \w+)+$", "", line.strip())


@contextmanager
def in_one_sentence() -> Iterator[None]:
    """While Spark works: where a query or a function fails, our error with one sentence, Spark's behind it."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        ours = sentence(error)
        if ours is None:
            raise
        raise ours from error


def sentence(error: Exception) -> LatecomerError | None:
    """Our error for one of Spark's, still of Spark's class too; None where neither Python nor a query failed."""
    streaming = isinstance(error, StreamingQueryException)
    text = str(error).partition("=== Streaming Query ===")[0]
    found = _OURS.findall(text)
    own, said = LatecomerError, _python_error(text)
    if found:
        known = getattr(errors, found[-1][0], None)
        own = known if isinstance(known, type) and issubclass(known, LatecomerError) else own
        message = _plain(found[-1][1])
    elif said is not None:
        message = _of_python(said)
    elif streaming:
        message = must("query", "run without an error", deepest(error), _BEHIND)
    else:
        return None
    ours = _both(StreamingQueryException if streaming else PySparkException, own)(message)
    ours.__cause__ = error
    return ours


@cache
def _both(sparks: type[PySparkException], own: type[LatecomerError]) -> type[LatecomerError]:
    """A class that is caught as our error and as Spark's."""
    return cast("type[LatecomerError]", type(own.__name__, (sparks, own), {"__module__": own.__module__}))


class _PythonError(NamedTuple):
    """The error that ends a traceback, and the last function in it that is the user's: file, line and name."""

    error: str
    place: tuple[str, str, str] | None


def _python_error(text: str) -> _PythonError | None:
    """What the last traceback in a text says."""
    _, there, block = text.rpartition(_TRACEBACK)
    last = next((line for line in block.splitlines() if line and not line[0].isspace()), None)
    if not there or last is None:
        return None
    frames = _FRAME.findall(block.partition(f"\n{last}")[0])
    own = [frame for frame in frames if not _is_library(frame[0])]
    return _PythonError(re.sub(r"^(?:\w+\.)+(?=\w)", "", _plain(last)), own[-1] if own else None)


def _is_library(file: str) -> bool:
    """Whether a file is one of ours, of Spark's or of another library."""
    file = file.replace("\\", "/")
    _, ours, rest = file.rpartition("/latecomer/")
    return bool(_LIBRARIES.search(file)) or (bool(ours) and (_PACKAGE / rest).exists())


def _of_python(said: _PythonError) -> str:
    if said.place is None:
        return must("query", "run without an error", said.error, _BEHIND)
    file, line, name = said.place
    got = f"{said.error} ({PurePath(file).name}, line {line})"
    return must(f"your function {name}", "run without an error", got, f"mend it and run it again; {_BEHIND}")
