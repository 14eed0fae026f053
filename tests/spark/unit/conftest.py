"""What tests without a JVM leave behind in this process, as tasks do in a worker of Spark's."""

from collections.abc import Iterator

import pytest

from kclient.spark.source.read_range import consumers
from kclient.spark.spark_version import supports

# What they test derives from classes that an older Spark does not have.
collect_ignore = [] if supports("admission-control") else ["test_limited_streams.py"]


@pytest.fixture(scope="session", autouse=True)
def closed_consumers() -> Iterator[None]:
    yield
    consumers().close()
