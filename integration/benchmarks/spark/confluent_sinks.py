"""What a careful user of confluent-kafka writes for Spark's workers.

One producer per worker process, kept from task to task; a full queue is waited for; before a task
ends, everything is flushed and every delivery report was looked at. This module is imported by the
workers.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any

import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException, Message, Producer
from pyspark.sql import Row

_PATIENCE = 120.0
_FULL = 0.05  # seconds to wait for room in the queue, at most
_SERVE = 1000  # records between two looks at delivery reports
_BATCH = 10_000

Settings = Mapping[str, str | int | bool]


class NotDeliveredError(RuntimeError):
    """Records of a task are not on the broker, as far as is known."""


class Deliveries:
    """The outcome of one task's records."""

    def __init__(self, settings: Settings) -> None:
        self.producer = worker_producer(tuple(sorted(settings.items())))
        self._failed: list[KafkaError] = []

    def settle(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self._failed.append(error)

    def check(self) -> None:
        """Waits for the reports that are missing.

        Raises:
            NotDeliveredError: when one is bad, or does not come.
        """
        left = self.producer.flush(_PATIENCE)
        if left or self._failed:
            first = self._failed[0] if self._failed else None
            msg = f"{left} records without a report, {len(self._failed)} refused: {first}"
            raise NotDeliveredError(msg)


@cache
def worker_producer(settings: tuple[tuple[str, str | int | bool], ...]) -> Producer:
    """Returns this worker's producer. Workers are forked before they come here."""
    return Producer(dict(settings))


def _produce(deliveries: Deliveries, topic: str, values: Iterable[bytes | None]) -> None:
    produce, poll = deliveries.producer.produce, deliveries.producer.poll
    settle = deliveries.settle
    for number, value in enumerate(values):
        while True:
            try:
                produce(topic, value, on_delivery=settle)
                break
            except BufferError:
                poll(_FULL)
        if not number % _SERVE:
            poll(0)


def _produce_batches(deliveries: Deliveries, topic: str, values: list[bytes | None]) -> None:
    for start in range(0, len(values), _BATCH):
        messages: list[dict[str, Any]] = [
            {"value": value} for value in values[start : start + _BATCH]
        ]
        while messages:
            deliveries.producer.produce_batch(topic, messages, on_delivery=deliveries.settle)
            messages = _refused(messages)
            deliveries.producer.poll(_FULL if messages else 0)


def _refused(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the messages that found the queue full, ready to be given again."""
    refused = [message for message in messages if "_error" in message]
    for message in refused:
        error = message.pop("_error")
        if error.code() != KafkaError._QUEUE_FULL:  # noqa: SLF001  # its name in the public API
            raise KafkaException(error)
    return refused


def foreach_partition(settings: Settings, topic: str) -> Callable[[Iterator[Row]], None]:
    """Returns a function for `DataFrame.foreachPartition`; the rows have one column, the value."""

    def write(rows: Iterator[Row]) -> None:
        deliveries = Deliveries(settings)
        # Spark hands a bytearray over, which confluent-kafka does not take. A Row is a tuple: its
        # fields are found sooner by their places than by their names.
        _produce(deliveries, topic, (bytes(value) for (value,) in rows))
        deliveries.check()

    return write


Batches = Iterator[pa.RecordBatch]


def map_in_arrow(settings: Settings, topic: str, *, batched: bool) -> Callable[[Batches], Batches]:
    """Returns a function for `DataFrame.mapInArrow` that yields how many it wrote, as `sent`.

    Args:
        settings: of librdkafka.
        topic: where to.
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
