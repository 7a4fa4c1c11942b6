"""One Spark session for all tests that need it."""

from collections.abc import Iterator

import pytest
from hypothesis import settings
from pyspark.sql import SparkSession

import latecomer as lc

settings.register_profile("latecomer", deadline=None)  # a kernel's first call compiles it
settings.load_profile("latecomer")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = lc.session("latecomer-tests", cores=2, memory="2g")
    yield session
    session.stop()
