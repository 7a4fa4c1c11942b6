"""What `import latecomer as lc` offers: names that are there, can be listed, and lead home."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import latecomer as lc
from latecomer.errors import InputError
from latecomer.outputs import Lane, Output
from latecomer.testing import random_stream, run_machine


def test_all_names_are_listed_and_are_there() -> None:
    listed = dir(lc)
    assert set(lc.__all__) <= set(listed)
    assert listed == sorted(listed)
    for name in lc.__all__:
        assert getattr(lc, name) is not None
    assert not hasattr(lc, "no_such_name")


def test_consolidate_gives_the_results_that_stand() -> None:
    def changed(values: list[int], changes: list[int | None]) -> Output:
        columns = {"x": values, "change": pa.array(changes, pa.int8()), "final": [False] * len(values)}
        return Output(Lane.RESULTS, pa.RecordBatch.from_pydict(columns))

    late = Output(Lane.LATE, pa.RecordBatch.from_pydict({"x": [9]}))
    table = lc.consolidate([changed([1, 2, 2], [1, 1, 1]), late, changed([1, 3, 2], [-1, 1, None])])
    assert table is not None
    assert table.to_pydict() == {"x": [2, 2, 3]}
    assert lc.consolidate([]) is None
    assert lc.consolidate([late]) is None
    run = run_machine(lc.Reorder("10 s"), random_stream(3, 50))
    given = lc.consolidate(output for batch in run.outputs for output in batch)
    assert given is not None
    assert len(given) == int(np.count_nonzero(given.column("id").to_numpy() >= 0))


def test_what_is_no_change_cannot_be_consolidated() -> None:
    wrongs: list[object] = [7, [pa.table({"x": [1]})], "changes"]
    for wrong in wrongs:
        with pytest.raises(InputError, match="consolidate must be given a DataFrame or outputs"):
            lc.consolidate(wrong)  # type: ignore[call-overload]
