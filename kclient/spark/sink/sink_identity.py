"""The names under which the tasks of a sink write transactions."""

from dataclasses import dataclass

from kclient.common.errors import IllegalStateError
from kclient.spark.options.sink_options import DEFAULT_PREFIX
from kclient.spark.sink.write_report import TaskIdentity


@dataclass(frozen=True, slots=True)
class SinkIdentity:
    """What a repeated task has in common with the first attempt, and with no other sink.

    Attributes:
        prefix: Beginning of each transactional id.
        sink_id: Id of the sink, or of a single write; None for the id of the streaming query, which
            Spark keeps in its checkpoint.
        is_single_write: Whether the job writes once, and not in micro-batches.
    """

    prefix: str = DEFAULT_PREFIX
    sink_id: str | None = None
    is_single_write: bool = False

    def transactional_id(self, task: TaskIdentity) -> str:
        """Return the transactional id of a task, which is also the group of its marker.

        Raises:
            IllegalStateError: The task belongs to no streaming query, and the sink has no id.
        """
        sink_id = self.sink_id or task.query_id
        if sink_id is None:
            raise IllegalStateError(f"{task}: got no id of a streaming query from Spark")
        return f"{self.prefix}-{sink_id}-{task.partition}"

    def batch_id(self, task: TaskIdentity) -> int:
        """Return the id of the micro-batch; 0 for a single write.

        Raises:
            IllegalStateError: The task belongs to no micro-batch.
        """
        if self.is_single_write:
            return 0
        if task.batch_id is None:
            raise IllegalStateError(f"{task}: got no id of a micro-batch from Spark")
        return task.batch_id
