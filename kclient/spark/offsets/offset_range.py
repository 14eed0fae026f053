"""What one task reads."""

from pyspark.sql.datasource import InputPartition

from kclient.common.types import TopicPartition
from kclient.spark.offsets.span import Span


class OffsetRange(InputPartition):
    """A span, on its way from the planner to a task.

    Attributes:
        topic_id: Id of the topic that was planned; empty where the brokers tell none.
    """

    def __init__(self, span: Span, topic_id: str = "") -> None:
        super().__init__(None)
        (self.topic, self.partition), self.start, self.end = span
        self.topic_id = topic_id

    @property
    def span(self) -> Span:
        """The span."""
        return Span(TopicPartition(self.topic, self.partition), self.start, self.end)

    def __repr__(self) -> str:
        return f"OffsetRange({self.span})"
