"""Libraries that are not always there: each comes with an extra of the package, which an error names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from latecomer.errors import LatecomerError, must

EXTRAS = {
    "pyspark": "spark",
    "typer": "cli",
    "rich": "cli",
    "pydantic": "cli",
    "altair": "report",
    "vl_convert": "report",
    "jinja2": "report",
    "markupsafe": "report",
    "sklearn": "tuner",
    "hypothesis": "testing",
}


class MissingExtraError(LatecomerError, ImportError):
    """A library is missing that an extra brings."""


@contextmanager
def needed_for(what: str) -> Iterator[None]:
    """While modules are imported for `what`: a library that is missing gives a sentence with the extra to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library not in EXTRAS:
            raise
        advice = f"run: pip install 'latecomer[{EXTRAS[library]}]'"
        raise MissingExtraError(must(what, f"find the library {library}", None, advice)) from error
