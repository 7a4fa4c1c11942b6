"""What Spark says when a task fails, in our words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from latecomer.errors import InputError, LatecomerError, must


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
        causes = re.findall(r"(?:Caused by: |: )([\w.$]+(?:Exception|Error): [^\n]*)", str(error))
        cause = causes[-1] if causes else str(error).split("\n", 1)[0]
        raise LatecomerError(must("Spark", f"read {what} to its end", cause, "are the files whole?")) from error
