"""Who is writing: asks Spark, in the worker."""

from pyspark import TaskContext

from kclient.spark.sink.write_report import TaskIdentity

_BATCH_ID = "streaming.sql.batchId"
_QUERY_ID = "sql.streaming.queryId"


def current_task() -> TaskIdentity:
    """Return the running task; outside of one, partition 0 of nothing."""
    context = TaskContext.get()
    if context is None:
        return TaskIdentity(0)
    batch = context.getLocalProperty(_BATCH_ID)
    return TaskIdentity(
        partition=context.partitionId(),
        attempt=context.attemptNumber(),
        batch_id=int(batch) if batch and batch.isdigit() else None,
        query_id=context.getLocalProperty(_QUERY_ID) or None,
    )
