"""What tests without a JVM leave behind in this process, as tasks do in a worker of Spark's."""

from collections.abc import Iterator

import pytest

from kclient.spark.source.read_range import consumers


@pytest.fixture(scope="session", autouse=True)
def closed_consumers() -> Iterator[None]:
    yield
    consumers().close()
