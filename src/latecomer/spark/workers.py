"""Spark's Python workers: each collects its garbage after every task, before it can take the next.

With numpy, pandas and numba loaded that looks at some 200,000 objects, all still needed, and takes as long as the task
itself. What has been loaded is therefore set aside once, where the collector does not look.
"""

from __future__ import annotations

import gc

from pyspark import TaskContext

_MANY = 20_000  # objects: what a task leaves behind is far less, what an import or a compiled kernel brings is more


def settle() -> None:
    """At the end of a task: set aside what was loaded in it."""
    if TaskContext.get() is not None and len(gc.get_objects()) > _MANY:
        gc.collect()
        gc.freeze()
