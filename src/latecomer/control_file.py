"""The small file in a checkpoint that has the control values of its query.

A streaming source reads it in a process of its own, so this module imports little: a process that starts with all
strategies takes two seconds.
"""

from __future__ import annotations

import json
import os
import time
import uuid

from pyarrow import fs

from latecomer.errors import StateError, must

FILE = "latecomer-control.json"

Values = dict[str, int | str]


def read_values(path: str) -> tuple[int, Values]:
    """The version and the control values that a file has; none where there is no such file."""
    try:
        data = read_file(path)
    except FileNotFoundError:
        return 0, {}
    try:
        found = json.loads(data)
        version, values = int(found["version"]), dict(found["values"])
        if not all(isinstance(value, int | str) for value in values.values()):
            raise ValueError(values)
        return version, values
    except (ValueError, TypeError, KeyError) as error:
        advice = "delete it and set the values again"
        raise StateError(must("control file", "be what latecomer wrote", path, advice)) from error


def write_values(path: str, values: Values) -> None:
    """Write control values as one file, which is there as a whole or not at all."""
    system, place = opened(path)
    version = time.time_ns() // 1_000  # later than any that the query has seen, also if the file was lost
    new = f"{place}.{uuid.uuid4().hex[:8]}.new"  # two may write at once: a person, and what steers a query
    with system.open_output_stream(new) as stream:
        stream.write(json.dumps({"version": version, "values": values}).encode())
    system.move(new, place)


def read_file(path: str, system: fs.FileSystem | None = None) -> bytes:
    known, place = (system, path) if system is not None else opened(path)
    with known.open_input_stream(place) as stream:
        data: bytes = stream.read()
    return data


def opened(path: str) -> tuple[fs.FileSystem, str]:
    if path.startswith("file:"):
        return fs.LocalFileSystem(), "/" + path.removeprefix("file:").lstrip("/")
    if "://" in path:
        system, place = fs.FileSystem.from_uri(path)
        return system, place
    return fs.LocalFileSystem(), os.path.abspath(path)
