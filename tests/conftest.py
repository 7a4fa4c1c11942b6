"""One Spark session for all tests that need it."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

import latecomer as lc


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = lc.session("latecomer-tests", cores=2, memory="2g")
    yield session
    session.stop()
