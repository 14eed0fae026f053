"""Errors that only the Spark integration raises."""

from collections.abc import Mapping, Sequence

from kclient.common.errors import ConfigError, KafkaError
from kclient.common.types import TopicPartition

__all__ = ["DataLossError", "UnsupportedSparkVersionError", "WorkerEnvironmentError"]


class DataLossError(KafkaError):
    """Records that a query should read are no longer in Kafka.

    Attributes:
        lost: Number of offsets that cannot be read, by partition: a lower bound. 0 where the number
            is unknown, as for a topic that was deleted while no query ran.
    """

    def __init__(self, what: str, lost: Mapping[TopicPartition, int]) -> None:
        super().__init__(
            f"data loss: {what}; to continue without these records set failOnDataLoss=false"
        )
        self.what = what
        self.lost = dict(lost)


class UnsupportedSparkVersionError(ConfigError):
    """A requested feature needs a newer Spark; the message names the first version that has it."""


class WorkerEnvironmentError(KafkaError):
    """The Python workers of a cluster lack something that the driver has.

    Attributes:
        problems: One text per problem: what is missing, on which workers, and how to fix it.
    """

    def __init__(self, message: str, problems: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems) or (message,)
