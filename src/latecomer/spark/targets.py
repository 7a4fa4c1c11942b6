"""Where the lanes of a query go: each has a sink, and no two share a folder."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping

from latecomer.errors import InputError, must
from latecomer.gives import RESULTS
from latecomer.spark.lane_log import BATCH
from latecomer.spark.lanes import Lanes
from latecomer.spark.packed import LANES
from latecomer.spark.sinks import Files, SinkLike, Target, as_sink


def targets_of(path: str | None, given: Mapping[str, SinkLike | None], lanes: Lanes) -> dict[str, Target]:
    """The sink of each lane: the user's own, or a folder below `path`; none of results where a view has them all."""
    for name in given:
        if name not in lanes.names:
            raise InputError(must("sinks", f"be for {', '.join(lanes.names)}", name, "correct the name"))
    missing = [lane for lane in LANES if lane not in given]
    if path is None and missing:
        advice = f"give a path, or sinks for {', '.join(missing)} too"
        raise InputError(must("every lane", "have somewhere to go", sorted(given), advice))
    root = (path or "").rstrip("/")
    chosen = {**{lane: f"{root}/{lane}" for lane in LANES}, **given}
    _check_left_out([name for name, sink in given.items() if sink is None], given, lanes)
    targets = {name: as_sink(sink, f"sinks[{name!r}]") for name, sink in chosen.items() if sink is not None}
    files = {name: sink for name, sink in targets.items() if isinstance(sink, Files)}
    _check_folders(files, [name for schema in (*lanes.inputs.values(), lanes.results) for name in schema.names])
    return targets


def _check_left_out(names: list[str], given: Mapping[str, SinkLike | None], lanes: Lanes) -> None:
    """Only results may have no sink, and only where a view of them has one."""
    if names and (names != [RESULTS] or not any(given.get(view) is not None for view in lanes.gives.views)):
        views = ", ".join(lanes.gives.views) or "none here"
        rule = f"have a sink; only {RESULTS!r} may be None, where a view of them ({views}) has one"
        raise InputError(
            must("every lane", rule, f"None for {', '.join(names)}", "lc.Discard() counts rows and drops them")
        )


def _check_folders(files: dict[str, Files], columns: list[str]) -> None:
    """Lanes overwrite their batches, so no lane may write into another's folder."""
    folders = {lane: posixpath.normpath(sink.path) + "/" for lane, sink in files.items()}
    for lane, folder in folders.items():
        inside = [other for other in folders if other != lane and folder.startswith(folders[other])]
        if inside:
            rule = f"not lie in that of lane '{inside[0]}'"
            raise InputError(must(f"folder of lane '{lane}'", rule, files[lane].path, "give each its own"))
    if files and BATCH in [column.lower() for column in columns]:
        advice = f"the folders are named {BATCH}=<id>: rename the column, or give your own sinks"
        raise InputError(must("columns written to files", f"not be named {BATCH}", BATCH, advice))
