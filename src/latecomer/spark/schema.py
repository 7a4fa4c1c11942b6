"""What columns may be: every check on the user's schema, before anything runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import types as T

from latecomer.errors import InputError, must
from latecomer.events import CARRIED_PREFIX
from latecomer.outputs import CHANGE, FINAL, ITEM, LATENESS, PANE, REASON, TIER
from latecomer.spark.compat import TIME_TYPES, spark_type

_OURS = (LATENESS, REASON, ITEM, CHANGE, PANE, FINAL, TIER)
_FLAT = (T.NumericType, T.DateType, T.TimestampType, T.TimestampNTZType, T.BooleanType, T.DayTimeIntervalType)
_TIMES = (T.TimestampType, T.TimestampNTZType, T.LongType)


def check_columns(schema: T.StructType, *, ours: bool = False, where: str = "columns") -> None:
    """Names that are unique and not ours, and types that cross into Python; `ours`: results, with columns of ours."""
    names = [field.name for field in schema.fields]
    folded = [name.lower() for name in names]
    for name in names:
        if folded.count(name.lower()) > 1:
            advice = "rename one of them before (case does not count)"
            raise InputError(must(where, "have unique names", name, advice))
        if name.lower().startswith(CARRIED_PREFIX):
            raise InputError(must(where, f"not begin with '{CARRIED_PREFIX}'", name, "rename it before"))
        if "." in name or "`" in name:
            rule = "have no dot or backtick in their names, which PySpark cannot hand to Python"
            raise InputError(must(where, rule, name, "rename it before"))
        if name.lower() in _OURS and not (ours and name in _OURS):
            advice = "latecomer adds a column of that name to its lanes: rename yours before"
            raise InputError(must(where, f"not be named {', '.join(_OURS)}", name, advice))
    for field in schema.fields:
        for path, kind in _leaves(field.name, field.dataType):
            cast = _UNSUPPORTED.get(type(kind))
            if cast is not None:
                advice = f"Spark cannot hand it to Python: cast it before, e.g. {cast.format(name=path)}"
                raise InputError(must(f"column '{path}'", "have a type Arrow knows", kind.simpleString(), advice))


_UNSUPPORTED: dict[type, str] = {
    T.CalendarIntervalType: "CAST({name} AS STRING)",
    T.YearMonthIntervalType: "CAST({name} AS INT)",
    **dict.fromkeys(TIME_TYPES, "CAST({name} AS STRING)"),
}


def _leaves(path: str, kind: T.DataType) -> Iterator[tuple[str, T.DataType]]:
    if isinstance(kind, T.StructType):
        for field in kind.fields:
            yield from _leaves(f"{path}.{field.name}", field.dataType)
    elif isinstance(kind, T.ArrayType):
        yield from _leaves(path, kind.elementType)
    elif isinstance(kind, T.MapType):
        yield from _leaves(path, kind.keyType)
        yield from _leaves(path, kind.valueType)
    else:
        yield path, kind


def check_roles(schema: T.StructType, roles: dict[str, Iterable[str]]) -> None:
    """Columns that are named in the call and exist."""
    names = [field.name for field in schema.fields]
    for role, columns in roles.items():
        for column in columns:
            if column not in names:
                advice = f"the columns are {', '.join(names)}"
                raise InputError(must(f"{role}=", "name a column", column, advice))


def check_time(schema: T.StructType, role: str, column: str) -> None:
    """A time is a timestamp, with or without zone, or a bigint of microseconds."""
    kind = schema[column].dataType
    if not isinstance(kind, _TIMES):
        advice = f"cast it before, e.g. df.withColumn('{column}', {_time_cast(kind, column)})"
        rule = f"be timestamp, timestamp_ntz or bigint (microseconds): column '{column}'"
        raise InputError(must(f"{role}=", rule, kind.simpleString(), advice))


def _time_cast(kind: T.DataType, column: str) -> str:
    if isinstance(kind, T.StringType):
        return f"to_timestamp('{column}')"
    if isinstance(kind, T.IntegerType | T.ShortType):
        return f"timestamp_seconds('{column}')"
    return f"col('{column}').cast('timestamp')"


def check_key(schema: T.StructType, columns: Iterable[str]) -> None:
    """Keys are hashed: maps and variants have no hash."""
    for column in columns:
        for path, kind in _hashed(column, schema[column].dataType):
            if isinstance(kind, T.MapType | T.VariantType):
                rule = f"have a hash, which maps and variants lack: column '{path}'"
                raise InputError(must("key=", rule, kind.simpleString(), "use a part of it as key"))


def _hashed(path: str, kind: T.DataType) -> Iterator[tuple[str, T.DataType]]:
    if isinstance(kind, T.StructType):
        for field in kind.fields:
            yield from _hashed(f"{path}.{field.name}", field.dataType)
    elif isinstance(kind, T.ArrayType):
        yield from _hashed(path, kind.elementType)
    else:
        yield path, kind


def check_source(schema: T.StructType, column: str) -> None:
    """A source is a name or a number."""
    kind = schema[column].dataType
    if isinstance(kind, T.StructType | T.ArrayType | T.MapType | T.VariantType | T.NullType):
        got = kind.simpleString()
        raise InputError(must("source=", f"be a plain value: column '{column}'", got, "use a part of it"))


def is_flat(schema: T.StructType) -> bool:
    """Whether every value has a fixed size."""
    return all(isinstance(field.dataType, _FLAT) for field in schema.fields)


def nullable(schema: T.StructType) -> T.StructType:
    """The same schema, every column nullable."""
    return T.StructType([T.StructField(f.name, f.dataType, True, f.metadata) for f in schema.fields])


def with_fields(schema: T.StructType, fields: dict[str, T.DataType]) -> T.StructType:
    """The schema with columns added."""
    added = T.StructType(list(schema.fields))
    for name, kind in fields.items():
        added = added.add(name, kind)
    return added


def spark_schema(schema: pa.Schema) -> T.StructType:
    """Arrow's columns as Spark's, every one nullable."""
    return T.StructType([T.StructField(each.name, spark_type(each.type), True) for each in schema])
