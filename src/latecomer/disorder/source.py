"""A recorded data set on disk: CSV, TSV, JSON lines or Parquet, plain or gzip, one file or a folder of them.

Files are taken in the order of their names. A row's number is its place in all files together: the lines (or Parquet
rows) of the files before it plus its line in its own, from 0. It does not depend on how the files are cut into blocks.
"""

from __future__ import annotations

import csv
import gzip
import json
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

import pyarrow as pa
import pyarrow.parquet as pq

from latecomer.disorder.lines import TextFormat
from latecomer.disorder.times import column_us
from latecomer.errors import InputError, must

if TYPE_CHECKING:
    from latecomer.disorder.config import SourceConfig

_ENDINGS = {".csv": "csv", ".tsv": "tsv", ".json": "json", ".jsonl": "json", ".ndjson": "json", ".parquet": "parquet"}
_BLOCK = 1 << 24


@dataclass(frozen=True)
class Source:
    """An opened data set: its files, how they are read, and which columns matter."""

    files: tuple[Path, ...]
    form: TextFormat | None
    schema: pa.Schema | None
    time: str
    unit: str
    device: str | None
    quarantining: bool
    arrival: str | None = None

    def with_arrival(self, column: str) -> Source:
        """The same, with a column that says when each row came, in the unit of the time field."""
        _column(column, self.names, "arrival")
        if self.schema is not None:
            column_us(pa.array([], self.schema.field(column).type), self.unit, f"arrival field {column!r}")
        form = None if self.form is None else replace(self.form, arrival=self.names.index(column))
        return replace(self, form=form, arrival=column)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""
        return self.form.names if self.form is not None else tuple(cast(pa.Schema, self.schema).names)

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return sum(path.stat().st_size for path in self.files)


def open_source(config: SourceConfig, folder: Path = Path()) -> Source:
    """Find the files and see what their columns are."""
    root = folder / config.path
    files = find_files(root)
    kind = config.format or _kind_of(files, separated=config.separator is not None)
    source = _open_parquet(files, config) if kind == "parquet" else _open_text(files, kind, config)
    if source.device is not None:
        _column(source.device, source.names, "device")
    return source


def find_files(root: Path) -> tuple[Path, ...]:
    """The file, or a folder's files by name; names that begin with _ or . are not data."""
    if root.is_file():
        return (root,)
    if not root.is_dir():
        raise InputError(must("path", "be a file or a folder", str(root), "correct it"))
    files = [path for path in sorted(root.rglob("*")) if path.is_file() and not _hidden(path.relative_to(root))]
    if not files:
        raise InputError(must("path", "hold files", str(root), "name a folder with data"))
    return tuple(files)


def _hidden(path: Path) -> bool:
    return any(part.startswith(("_", ".")) for part in path.parts)


def _kind_of(files: tuple[Path, ...], *, separated: bool) -> str:
    """What the files are by their endings; with a separator, those without a known one are CSV."""
    kinds = {_ENDINGS.get(_ending(path)) for path in files}
    if separated and kinds <= {None, "csv"}:
        return "csv"
    if None in kinds or len(kinds) > 1:
        odd = next((path for path in files if _ENDINGS.get(_ending(path)) is None), files[0])
        advice = (
            f"give the format or a separator, or let all files end in one of {', '.join(_ENDINGS)}, with or without .gz"
        )
        raise InputError(must("path", "say by one ending what the files are", str(odd), advice))
    return cast(str, kinds.pop())


def _ending(path: Path) -> str:
    name = path.name.lower().removesuffix(".gz")
    return Path(name).suffix


def _open_parquet(files: tuple[Path, ...], config: SourceConfig) -> Source:
    schemas = [_parquet_schema(path) for path in files]
    for path, schema in zip(files, schemas, strict=True):
        if not schema.equals(schemas[0]):
            raise InputError(must(str(path), "have the columns of the first file", schema.names, f"see {files[0]}"))
    time = _column(config.time.field, tuple(schemas[0].names))
    column_us(pa.array([], schemas[0].field(time).type), config.time.unit, f"time field {time!r}")
    return Source(
        files, None, schemas[0], time, config.time.unit, config.device, quarantining=config.bad_rows == "quarantine"
    )


def _parquet_schema(path: Path) -> pa.Schema:
    with open_parquet(path) as file:
        return pa.schema([_in_micros(field) for field in file.schema_arrow])


def _in_micros(field: pa.Field) -> pa.Field:
    """Stamps are kept in microseconds, as Spark keeps them."""
    kind = field.type
    nanos = pa.types.is_timestamp(kind) and kind.unit == "ns"
    return (field.with_type(pa.timestamp("us", kind.tz)) if nanos else field).remove_metadata()


def _open_text(files: tuple[Path, ...], kind: str, config: SourceConfig) -> Source:
    separator = None if kind == "json" else _separator(kind, config)
    header = False if kind == "json" else _has_header(config)
    form = TextFormat((), separator, header, 0, config.time.unit)
    found = [_first_fields(path, form) for path in files]
    for path, names in zip(files, found, strict=True):
        if header and names != found[0]:
            raise InputError(
                must(f"{path}, line 1", "have the header of the first file", list(names), f"see {files[0]}")
            )
    form = replace(form, names=found[0])
    time = _column(config.time.field, form.names)
    form = replace(form, time=form.names.index(time))
    quarantining = config.bad_rows == "quarantine"
    return Source(files, form, None, time, config.time.unit, config.device, quarantining=quarantining)


def _separator(kind: str, config: SourceConfig) -> str:
    separator = config.separator or ("\t" if kind == "tsv" else ",")
    if len(separator) != 1 or separator in '"\r\n':
        raise InputError(must("separator", "be one character", separator, 'e.g. "," or ";" or "\\t"'))
    return separator


def _has_header(config: SourceConfig) -> bool:
    """A field named by name needs a header; one named by place has none unless it is said."""
    if config.header is not None:
        return config.header
    return isinstance(config.time.field, str)


def _first_fields(path: Path, form: TextFormat) -> tuple[str, ...]:
    """The names of the columns, from the first line."""
    where = f"{path}, line 1"
    with whole_file(path), open_file(path) as file:
        line = file.readline().removeprefix(b"\xef\xbb\xbf").rstrip(b"\r\n")
    if not line.strip():
        raise InputError(must(where, "have fields", line.decode(errors="replace"), "the file is empty or starts blank"))
    try:
        text = line.decode()
        names = _json_names(text) if form.separator is None else _split(text, form.separator)
    except (UnicodeDecodeError, ValueError, RecursionError, csv.Error):
        kind = "a JSON object" if form.separator is None else "UTF-8 text"
        raise InputError(must(where, f"be {kind}", line[:80].decode(errors="backslashreplace"), "mend it")) from None
    if form.separator is not None and not form.header:
        names = [f"c{place}" for place in range(len(names))]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(must(where, "name each column once", twice, "rename one"))
    return tuple(names)


def _json_names(text: str) -> list[str]:
    row = json.loads(text)
    if not isinstance(row, dict):
        raise ValueError("no object")
    return list(row)


def _split(text: str, separator: str) -> list[str]:
    return next(csv.reader([text], delimiter=separator, strict=True))


def _column(field: int | str, names: tuple[str, ...], role: str = "time") -> str:
    if isinstance(field, int):
        if not 0 <= field < len(names):
            raise InputError(must(f"{role} field", f"be a place from 0 to {len(names) - 1}", field, "count from 0"))
        return names[field]
    if field not in names:
        raise InputError(must(f"{role} field", "name a column", field, f"the columns are {', '.join(names)}"))
    return field


def open_file(path: Path) -> BinaryIO:
    """A file's bytes, unzipped where it ends in .gz."""
    return cast(BinaryIO, gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb"))


@contextmanager
def whole_file(path: Path) -> Iterator[None]:
    """Say which file cannot be read, or not to its end."""
    try:
        yield
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(must(str(path), "be readable to its end", str(error), "is it whole, and gzip?")) from None


def line_blocks(path: Path) -> Iterator[list[bytes]]:
    """A text file's lines in blocks of some megabytes."""
    rest = b""
    with whole_file(path), open_file(path) as file:
        while data := file.read(_BLOCK):
            *lines, rest = (rest + data).split(b"\n")
            if lines:
                yield lines
    if rest:
        yield [rest]


def open_parquet(path: Path | str) -> pq.ParquetFile:
    """A Parquet file; the old INT96 stamps are read in microseconds, which reach further than nanoseconds."""
    try:
        return pq.ParquetFile(path, coerce_int96_timestamp_unit="us")
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(must(str(path), "be a Parquet file", str(error).split(".")[0], "give the format")) from None
