"""Spark's Python workers: each collects its garbage after every task, before it can take the next.

With numpy, pandas and numba loaded that looks at some 200,000 objects, all still needed, and takes as long as the task
itself. What has been loaded is therefore set aside, where the collector does not look. A few times only: a plan with
large tables of the user's comes anew with every task, and each copy set aside would stay.
"""

from __future__ import annotations

import gc

from pyspark import TaskContext

_MANY = 20_000  # objects: what a task leaves behind is far less, what an import or a compiled kernel brings is more
_OFTEN = 6  # tasks: by then everything has been loaded
_times = 0


def settle() -> None:
    """At the end of a task: set aside what was loaded in it."""
    global _times
    if TaskContext.get() is None or _times == _OFTEN or len(gc.get_objects()) <= _MANY:
        return
    _times += 1
    gc.unfreeze()  # some of what was set aside before may be garbage by now
    gc.collect()
    gc.freeze()
