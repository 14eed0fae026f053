"""Errors of the Spark integration."""

from kclient.common.types import TopicPartition
from kclient.spark.common.errors import DataLossError
from tests.support.checks.travelled import travelled


def test_data_loss_error_pickles_with_its_counts() -> None:
    error = travelled(DataLossError("t-0 gone", {TopicPartition("t", 0): 5}))
    assert error.lost == {TopicPartition("t", 0): 5}
    assert "data loss: t-0 gone; to continue" in str(error)
