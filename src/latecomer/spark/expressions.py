"""What users write in steps, as SQL text or Column: looked at when the step is taken, refused in one sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from latecomer.errors import InputError, must
from latecomer.events import CARRIED_PREFIX


def as_column(value: Any, step: str) -> Column:
    """SQL text or a Column as a Column."""
    if isinstance(value, str):
        return F.expr(value)
    if isinstance(value, Column):
        return value
    advice = "e.g. 'kwh > 0' or F.col('kwh') > 0; a constant is F.lit(5) or '5'"
    raise InputError(must(step, "be given SQL text or a Column", value, advice))


def check_condition(df: DataFrame, wanted: Column, step: str) -> None:
    """Refuse what is neither true nor false."""
    kind = df.select(wanted).schema[0].dataType
    if not isinstance(kind, T.BooleanType | T.NullType):
        raise InputError(must(step, "be given a condition", kind.simpleString(), "compare it, e.g. 'kwh > 0'"))


def check_names(names: list[str], step: str) -> None:
    """Refuse names of columns that are carried for us: they would take the place of the time, the key, ..."""
    for name in names:
        if not isinstance(name, str) or name.lower().startswith(CARRIED_PREFIX):
            rule = f"name columns as text that does not begin with '{CARRIED_PREFIX}'"
            raise InputError(must(step, rule, name, "choose another name"))


@contextmanager
def understood(step: str) -> Iterator[None]:
    """While Spark looks at what the user wrote: what it does not understand is one sentence."""
    try:
        yield
    except (AnalysisException, ParseException) as error:
        said = next((line for line in str(error).splitlines() if line.strip()), "")
        said = re.sub(r"(?: SQLSTATE: \w+)?(?:; line \d+ pos \d+)?;?$", "", said.strip())
        said = re.sub(rf",? ?`{CARRIED_PREFIX}\w+`", "", said)  # Spark suggests columns that are not the user's
        advice = "look at the names of columns and functions"
        raise InputError(must(step, "be something that Spark understands", said, advice)) from error
