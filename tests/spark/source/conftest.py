"""Fixtures of the tests of the source."""

from collections.abc import Iterator

import pytest

from kclient.spark.common.installed_spark import supports
from kclient.spark.source.read_task import consumers

# The reader derives from classes that an older Spark does not have.
collect_ignore = [] if supports("admission-control") else ["test_limited_stream_reader.py"]


@pytest.fixture(scope="session", autouse=True)
def closed_consumers() -> Iterator[None]:
    yield
    consumers().close()
