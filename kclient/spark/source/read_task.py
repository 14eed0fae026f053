"""The tasks that read: their input partition, their body, and the consumers that they share."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from kclient.common.runtime import Runtime
from kclient.common.types import TopicPartition
from kclient.consumer.consumer import Consumer
from kclient.network.system_runtime import system_runtime
from kclient.spark.common.offsets import Span
from kclient.spark.common.worker_tuning import tuned_worker
from kclient.spark.options.secret_options import resolved
from kclient.spark.options.source_options import ReadSettings
from kclient.spark.source.range_reader import RangeReader

_Key = tuple[int, tuple[tuple[str, str], ...]]
_MAX_IDLE = 8


class OffsetRange(InputPartition):
    """The offsets that one task reads; the planner creates it, Spark sends it to the task.

    Attributes:
        topic_id: Id of the topic at planning time; empty if the brokers do not report ids.
    """

    def __init__(self, span: Span, topic_id: str = "") -> None:
        super().__init__(None)
        (self.topic, self.partition), self.start, self.end = span
        self.topic_id = topic_id

    @property
    def span(self) -> Span:
        """The offsets."""
        return Span(TopicPartition(self.topic, self.partition), self.start, self.end)

    def __repr__(self) -> str:
        return f"OffsetRange({self.span})"


def read_range(settings: ReadSettings, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    """Yield the records of one range, read by a consumer of this process.

    Args:
        settings: Settings of the tasks.
        partition: The range; Spark passes a partition of its own if the plan is empty.
    """
    if not isinstance(partition, OffsetRange):
        return
    span = partition.span
    config = settings.consumer_for(span.size)
    with tuned_worker(), consumers().borrow(config) as consumer:
        yield from RangeReader(consumer, settings, system_runtime()).read(span, partition.topic_id)


class ConsumerCache:
    """Idle consumers of a worker process, by configuration.

    Spark reuses its Python workers for later tasks; a new consumer per task would spend more time
    on connections than on records. A consumer serves one task at a time; a task that finds none
    idle gets a new one.

    Args:
        runtime: Clock, tasks and sockets.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._tasks = runtime.tasks
        self._idle: dict[_Key, Consumer] = {}

    @contextmanager
    def borrow(self, config: Mapping[str, str]) -> Iterator[Consumer]:
        """Provide a consumer for a block; it is closed if the block fails.

        Args:
            config: Configuration of the consumer, by dotted name.
        """
        key = (self._tasks.process_id(), tuple(sorted(config.items())))
        consumer = self._idle.pop(key, None) or Consumer(resolved(config), runtime=self._runtime)
        try:
            yield consumer
        except Exception:
            consumer.close()
            raise
        except BaseException:  # GeneratorExit: the task stops reading; the consumer is usable
            self._put_back(key, consumer)
            raise
        self._put_back(key, consumer)

    def close(self) -> None:
        """Close the idle consumers."""
        while self._idle:
            self._idle.popitem()[1].close()

    def _put_back(self, key: _Key, consumer: Consumer) -> None:
        self._drop_inherited(key[0])
        while key not in self._idle and len(self._idle) >= _MAX_IDLE:
            self._idle.pop(next(iter(self._idle))).close()
        before = self._idle.pop(key, None)
        self._idle[key] = consumer
        if before is not None:
            before.close()

    def _drop_inherited(self, process_id: int) -> None:
        """Drop consumers inherited through a fork: their connections belong to the parent."""
        for key in [key for key in self._idle if key[0] != process_id]:
            del self._idle[key]


@cache
def consumers() -> ConsumerCache:
    """Return the consumer cache of this process."""
    return ConsumerCache(system_runtime())
