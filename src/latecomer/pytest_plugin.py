"""Fixtures for tests of pipelines, there wherever latecomer and pytest are installed; nothing is loaded before use."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import pyarrow as pa


_SMALL: dict[str, dict[str, Any]] = {"meters": {"meters": 10, "days": 3}, "traffic": {"seconds": 5}}


@pytest.fixture
def disorder() -> Callable[..., pa.Table]:
    """A seeded stream out of order, in the order of arrival: `disorder("meters", meters=10, days=3, seed=1)`.

    Names and sizes are those of `lc.preset`; its columns are `ts`, `arrival` and those of the preset.
    """

    def made(name: str = "synthetic", *, seed: int = 0, **settings: Any) -> pa.Table:
        import latecomer as lc

        small: dict[str, Any] = _SMALL.get(name, {"events": 1_000})
        return lc.preset(name, **(settings or small), seed=seed).table()

    return made


@pytest.fixture
def scenario() -> Callable[..., Any]:
    """`latecomer.testing.Scenario`: a stream written as a small table."""
    from latecomer.testing import Scenario

    return Scenario
