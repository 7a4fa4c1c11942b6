"""Spark's Python workers: what each does after its tasks besides working costs as much as the tasks themselves.

A worker collects its garbage after every task. With numpy, pandas and numba loaded that looks at some 200,000 objects,
all still needed. What has been loaded is therefore set aside, where the collector does not look. A few times only: a
plan with large tables of the user's comes anew with every task, and each copy set aside would stay.

And a worker gives memory back as soon as it is free, to ask for it again in the next task, page by page: a fifth of a
machine's time. So some of it stays, unless the environment says how memory is to be handled.
"""

from __future__ import annotations

import ctypes
import gc
import os
from functools import cache

import pyarrow as pa
from pyspark import TaskContext

_MANY = 20_000  # objects: what a task leaves behind is far less, what an import or a compiled kernel brings is more
_OFTEN = 6  # tasks: by then everything has been loaded
_times = 0

_TRIM, _MMAP = -1, -3  # numbers of glibc's settings
_SAID = ("ARROW_DEFAULT_MEMORY_POOL", "MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_")  # by the user
_STAYS = 256 << 20  # bytes at the end of the heap that are free and stay with the worker
_LARGE = 32 << 20  # bytes of one array that is given back in any case: the most that every glibc takes here


def end_task() -> None:
    """At the end of a task: set aside what was loaded in it."""
    global _times
    if TaskContext.get() is None:
        return
    keep_memory()
    if _times == _OFTEN or len(gc.get_objects()) <= _MANY:
        return
    _times += 1
    gc.unfreeze()  # some of what was set aside before may be garbage by now
    gc.collect()
    gc.freeze()


@cache
def keep_memory() -> bool:
    """Let memory that is freed stay with this process, Arrow's too, where that can be asked for and nobody objects."""
    if any(name in os.environ for name in _SAID):
        return False
    try:
        set_option = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    set_option(_TRIM, _STAYS)
    set_option(_MMAP, _LARGE)
    pa.set_memory_pool(pa.system_memory_pool())
    return True
