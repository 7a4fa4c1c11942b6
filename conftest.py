"""One Spark session for all tests that need it, and these in one process where tests run in several."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from pyspark.sql import SparkSession

import latecomer as lc

ROOT = Path(__file__).parent
START_SESSIONS = (ROOT / "tests" / "spark", ROOT / "tests" / "cli", ROOT / "lab" / "tests")

settings.register_profile("latecomer", deadline=None)  # a kernel's first call compiles it
settings.load_profile("latecomer")


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist looks at the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests that need Spark together: `-n 3 --dist loadgroup` runs the others beside them."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()) or any(
            item.path.is_relative_to(each) for each in START_SESSIONS
        ):
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = lc.session("latecomer-tests", cores=2, memory="2g")
    yield session
    session.stop()
