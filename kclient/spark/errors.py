"""Errors that only the Spark side raises."""

from collections.abc import Mapping, Sequence

from kclient.common.errors import ConfigError, KafkaError
from kclient.common.types import TopicPartition

__all__ = ["DataLossError", "UnsupportedSparkVersionError", "WorkerEnvironmentError"]


class DataLossError(KafkaError):
    """Records that a query was to read are not in Kafka any more.

    Attributes:
        lost: Offsets that cannot be read, by partition: at least so many. Where nothing is known,
            as of a topic that was deleted while no query ran, 0.
    """

    def __init__(self, what: str, lost: Mapping[TopicPartition, int]) -> None:
        super().__init__(
            f"data loss: {what}; to go on without these records set failOnDataLoss=false"
        )
        self.what = what
        self.lost = dict(lost)

    def __reduce__(self) -> tuple[type["DataLossError"], tuple[str, dict[TopicPartition, int]]]:
        """Travel between processes as what it was made from."""
        return type(self), (self.what, self.lost)


class UnsupportedSparkVersionError(ConfigError):
    """What was asked for needs a newer Spark; the text names the first one that has it."""


class WorkerEnvironmentError(KafkaError):
    """The Python workers of a cluster lack something that the driver has.

    Attributes:
        problems: What is missing, each with where and what to do.
    """

    def __init__(self, message: str, problems: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems) or (message,)
