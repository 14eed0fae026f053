"""What a Spark version cannot do is refused with the version that can."""

import pytest

from kclient.common.errors import ConfigError
from kclient.common.types import TopicPartition
from kclient.spark.errors import DataLossError, UnsupportedSparkVersionError
from kclient.spark.spark_version import require, spark_version, supports
from tests.support.travelled import travelled


def test_an_old_spark_is_told_which_version_can() -> None:
    with pytest.raises(UnsupportedSparkVersionError) as caught:
        require("admission-control", "maxOffsetsPerTrigger", "4.1.4")
    assert str(caught.value).startswith(
        "maxOffsetsPerTrigger: got Spark 4.1.4, expected 4.2 or newer; "
    )
    assert isinstance(caught.value, ConfigError)


@pytest.mark.parametrize("version", ["4.2.0", "4.2.1", "4.3.0", "4.10.0", "5.0.0.dev0"])
def test_newer_ones_may(version: str) -> None:
    require("admission-control", "maxOffsetsPerTrigger", version)
    assert supports("admission-control", version)


def test_the_installed_one_is_judged_without_a_version() -> None:
    assert supports("data-source")
    assert spark_version().count(".") >= 2


def test_a_loss_travels_with_its_counts() -> None:
    error = travelled(DataLossError("t-0 gone", {TopicPartition("t", 0): 5}))
    assert error.lost == {TopicPartition("t", 0): 5}
    assert "data loss: t-0 gone; to go on" in str(error)
