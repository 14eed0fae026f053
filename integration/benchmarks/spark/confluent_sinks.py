"""Sinks for Spark's workers as a careful user of confluent-kafka writes them.

They keep one producer per worker process, wait while the queue is full, and at the end of a task
flush and check every delivery report. The workers import this module.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any

import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException, Message, Producer
from pyspark.sql import Row

_FLUSH_TIMEOUT = 120.0
_QUEUE_WAIT = 0.05  # seconds to wait while the queue is full
_SERVE = 1000  # records between two polls for delivery reports
_BATCH = 10_000

Settings = Mapping[str, str | int | bool]


class NotDeliveredError(RuntimeError):
    """Records of a task failed or have no delivery report."""


class Deliveries:
    """The outcome of one task's records."""

    def __init__(self, settings: Settings) -> None:
        self.producer = worker_producer(tuple(sorted(settings.items())))
        self._failed: list[KafkaError] = []

    def report(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self._failed.append(error)

    def check(self) -> None:
        """Waits for the missing reports.

        Raises:
            NotDeliveredError: a report is missing or has an error.
        """
        left = self.producer.flush(_FLUSH_TIMEOUT)
        if left or self._failed:
            first = self._failed[0] if self._failed else None
            msg = f"{left} records without a report, {len(self._failed)} failed: {first}"
            raise NotDeliveredError(msg)


@cache
def worker_producer(settings: tuple[tuple[str, str | int | bool], ...]) -> Producer:
    """Returns the producer of this worker, which is forked before the first call."""
    return Producer(dict(settings))


def _produce(deliveries: Deliveries, topic: str, values: Iterable[bytes | None]) -> None:
    produce, poll = deliveries.producer.produce, deliveries.producer.poll
    report = deliveries.report
    for number, value in enumerate(values):
        while True:
            try:
                produce(topic, value, on_delivery=report)
                break
            except BufferError:
                poll(_QUEUE_WAIT)
        if not number % _SERVE:
            poll(0)


def _produce_batches(deliveries: Deliveries, topic: str, values: list[bytes | None]) -> None:
    for start in range(0, len(values), _BATCH):
        messages: list[dict[str, Any]] = [
            {"value": value} for value in values[start : start + _BATCH]
        ]
        while messages:
            deliveries.producer.produce_batch(topic, messages, on_delivery=deliveries.report)
            messages = _rejected(messages)
            deliveries.producer.poll(_QUEUE_WAIT if messages else 0)


def _rejected(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the messages that did not fit in the queue, to be sent again."""
    rejected = [message for message in messages if "_error" in message]
    for message in rejected:
        error = message.pop("_error")
        if error.code() != KafkaError._QUEUE_FULL:  # noqa: SLF001  # its name in the public API
            raise KafkaException(error)
    return rejected


def foreach_partition(settings: Settings, topic: str) -> Callable[[Iterator[Row]], None]:
    """Returns a function for `DataFrame.foreachPartition`; the rows have one column, the value."""

    def write(rows: Iterator[Row]) -> None:
        deliveries = Deliveries(settings)
        # Spark passes a bytearray, which confluent-kafka does not accept. Unpacking a Row is faster
        # than access by name.
        _produce(deliveries, topic, (bytes(value) for (value,) in rows))
        deliveries.check()

    return write


Batches = Iterator[pa.RecordBatch]


def map_in_arrow(settings: Settings, topic: str, *, batched: bool) -> Callable[[Batches], Batches]:
    """Returns a function for `DataFrame.mapInArrow` that yields the number of records as `sent`.

    Args:
        settings: options of librdkafka.
        topic: topic of the records.
        batched: with `produce_batch`, else with `produce`.
    """
    produce = _produce_batches if batched else _produce

    def write(batches: Batches) -> Batches:
        deliveries, sent = Deliveries(settings), 0
        for batch in batches:
            values = batch.column("value").to_pylist()
            produce(deliveries, topic, values)
            sent += len(values)
        deliveries.check()
        yield pa.RecordBatch.from_pydict({"sent": pa.array([sent], pa.int64())})

    return write
