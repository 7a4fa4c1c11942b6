"""One Spark session for all tests that need it."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings
from pyspark.sql import SparkSession

import latecomer as lc

# A JVM of the tests lives for minutes: without the second compiler it takes half the processor time.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC")

settings.register_profile("latecomer", deadline=None)  # a kernel's first call compiles it
settings.load_profile("latecomer")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs a session, so that it can run in one process and everything else in another."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker("spark")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = lc.session("latecomer-tests", cores=2, memory="2g")
    yield session
    session.stop()
