"""kclient, by its public names alone."""

import itertools
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import closing
from typing import Any, ClassVar

from integration.benchmarks.meter import Meter
from integration.benchmarks.workload import (
    Consumed,
    Workload,
    at_fixed_times,
    chunks_of,
    keys_of,
    values_of,
)
from kclient import Consumer, Producer, TopicPartition

_PATIENCE = 120.0
_AT_ONCE = 1000
_ARROW_ROWS = 10_000


def producer_options(load: Workload, **more: object) -> dict[str, Any]:
    """Returns the options of a producer."""
    tuned: dict[str, Any] = {
        "acks": load.acks,
        "linger_ms": load.linger_ms,
        "batch_size": load.batch_bytes,
        "compression_type": load.codec,
        **more,
    }
    return _needed(load) | ({} if load.defaults else tuned)


def consumer_options(load: Workload) -> dict[str, Any]:
    """Returns the options of a consumer."""
    tuned: dict[str, Any] = {
        "enable_auto_commit": False,
        "auto_offset_reset": "earliest",
        "max_partition_fetch_bytes": 1 << 20,
        "max_poll_records": 5000,
    }
    return _needed(load) | ({} if load.defaults else tuned)


def _needed(load: Workload) -> dict[str, Any]:
    needed: dict[str, Any] = {"bootstrap_servers": load.servers}
    if load.tls_bootstrap:
        needed |= {"security_protocol": "SSL", "ssl_truststore_location": load.truststore}
    return needed


class Session(ABC):
    """A client that is ready to move the records of a workload, any number of times."""

    @abstractmethod
    def __init__(self, load: Workload) -> None:
        """Connects; a producer sends the first record."""

    @classmethod
    def drive(cls, load: Workload, meter: Meter) -> int | Consumed:
        """Runs a session once."""
        with closing(cls(load)) as session:
            return session.run(meter)

    @abstractmethod
    def run(self, meter: Meter) -> int | Consumed:
        """Moves the records, and returns their number with that of the first record."""

    @abstractmethod
    def close(self) -> None: ...


class _Sending(Session):
    more: ClassVar[dict[str, Any]] = {}

    def __init__(self, load: Workload) -> None:
        first, *self.values = values_of(load)
        self.topic = load.topic
        self.producer = Producer(**self.options(load))
        self.warm_up(first)

    def options(self, load: Workload) -> dict[str, Any]:
        """Returns the options of the producer."""
        return producer_options(load, **self.more)

    def warm_up(self, value: bytes) -> None:
        """Sends the first record."""
        self.producer.send(self.topic, value).result(_PATIENCE)

    def close(self) -> None:
        self.producer.close()


class Produce(_Sending):
    """Keeps the future of each record and looks at it in the end."""

    def run(self, meter: Meter) -> int:
        futures: list[Any] = []
        send, keep, topic = self.producer.send, futures.append, self.topic
        meter.start(skipped=1)
        for value in self.values:
            keep(send(topic, value))
        self.producer.flush(_PATIENCE)
        delivered = sum(1 for future in futures if future.done() and future.exception() is None)
        meter.stop()
        return 1 + delivered


class ProduceWithoutOutcome(_Sending):
    """Fire and flush."""

    def run(self, meter: Meter) -> int:
        send, topic = self.producer.send, self.topic
        meter.start(skipped=1)
        for value in self.values:
            send(topic, value)
        self.producer.flush(_PATIENCE)
        meter.stop()
        return 1 + len(self.values)


class _Transactional(_Sending):
    def options(self, load: Workload) -> dict[str, Any]:
        # Processes whose measurements take turns have a topic in common.
        return producer_options(load, transactional_id=f"{load.topic}-{os.getpid()}")

    def warm_up(self, value: bytes) -> None:
        self.producer.init_transactions()
        with self.producer.transaction():
            self.producer.send(self.topic, value)


class ProduceInOneTransaction(_Transactional):
    """Fire and flush in a transaction; its begin and its commit are not measured."""

    def run(self, meter: Meter) -> int:
        send, topic = self.producer.send, self.topic
        with self.producer.transaction():
            meter.start(skipped=1)
            for value in self.values:
                send(topic, value)
            self.producer.flush(_PATIENCE)
            meter.stop()
        return 1 + len(self.values)


class ProduceInTransactions(_Transactional):
    """Commits at intervals; the commit fails if a record has."""

    def __init__(self, load: Workload) -> None:
        super().__init__(load)
        self.interval_s = load.transaction_ms / 1000
        self.chunks = chunks_of(self.values)

    def run(self, meter: Meter) -> int:
        producer, topic, clock, interval_s = (
            self.producer,
            self.topic,
            time.monotonic,
            self.interval_s,
        )
        send = producer.send
        meter.start(skipped=1)
        producer.begin_transaction()
        due = clock() + interval_s
        for chunk in self.chunks:
            for value in chunk:
                send(topic, value)
            if clock() >= due:
                producer.commit_transaction()
                producer.begin_transaction()
                due = clock() + interval_s
        producer.commit_transaction()
        meter.stop()
        return 1 + len(self.values)


class ProduceMany(_Sending):
    """Lists of records, each with one outcome."""

    keyed = False

    def __init__(self, load: Workload) -> None:
        super().__init__(load)
        values = self.values
        chunks = [values[at : at + _AT_ONCE] for at in range(0, len(values), _AT_ONCE)]
        self.calls = [(each, keys_of(len(each)) if self.keyed else None) for each in chunks]

    def run(self, meter: Meter) -> int:
        send_many, topic = self.producer.send_many, self.topic
        meter.start(skipped=1)
        outcomes = [send_many(topic, *call) for call in self.calls]
        self.producer.flush(_PATIENCE)
        delivered = sum(outcome.result(_PATIENCE) for outcome in outcomes)
        meter.stop()
        return 1 + delivered


class ProduceManyKeyed(ProduceMany):
    """Lists of records and their keys."""

    keyed = True


class ProduceArrow(_Sending):
    """Arrow batches of as many records as Spark's have, each with one outcome."""

    keyed = False

    def __init__(self, load: Workload) -> None:
        import pyarrow as pa  # noqa: PLC0415 - the other kclient cells do not pay for it

        super().__init__(load)
        self.batches = []
        for at in range(0, len(self.values), _ARROW_ROWS):
            columns = {"value": pa.array(self.values[at : at + _ARROW_ROWS], pa.binary())}
            if self.keyed:
                columns["key"] = pa.array(keys_of(len(columns["value"])), pa.binary())
            self.batches.append(pa.record_batch(columns))
        warm_up = pa.table({"value": self.values[:0]})
        self.producer.send_arrow(self.topic, warm_up).result(_PATIENCE)

    def run(self, meter: Meter) -> int:
        send_arrow, topic = self.producer.send_arrow, self.topic
        meter.start(skipped=1)
        outcomes = [send_arrow(topic, batch) for batch in self.batches]
        self.producer.flush(_PATIENCE)
        delivered = sum(outcome.result(_PATIENCE) for outcome in outcomes)
        meter.stop()
        return 1 + delivered


class ProduceArrowKeyed(ProduceArrow):
    """Arrow batches with a column of keys."""

    keyed = True


class ProduceInTurn(_Sending):
    """One record to each partition in turn, fire and flush."""

    def __init__(self, load: Workload) -> None:
        super().__init__(load)
        turns = range(load.partitions)
        for partition in turns:  # the first record of a partition is the warm-up
            self.producer.send(self.topic, self.values.pop(), partition=partition)
        self.producer.flush(_PATIENCE)
        self.skipped = 1 + load.partitions
        self.records = list(zip(self.values, itertools.cycle(turns), strict=False))

    def run(self, meter: Meter) -> int:
        send, topic = self.producer.send, self.topic
        meter.start(skipped=self.skipped)
        for value, partition in self.records:
            send(topic, value, partition=partition)
        self.producer.flush(_PATIENCE)
        meter.stop()
        return self.skipped + len(self.records)


class Latency(_Sending):
    """Each record when the one before it is acknowledged."""

    more: ClassVar[dict[str, Any]] = {"linger_ms": 0}

    def run(self, meter: Meter) -> int:
        send, topic = self.producer.send, self.topic
        took: list[float] = []
        meter.start(skipped=1)
        for value in self.paced(self.values):
            began = time.perf_counter()
            send(topic, value).result(_PATIENCE)
            took.append(time.perf_counter() - began)
        meter.stop()
        meter.note_latencies(took)
        return 1 + len(took)

    def paced(self, values: list[bytes]) -> Iterable[bytes]:
        """Yields values when they are to be sent."""
        return values


class PacedLatency(Latency):
    """A record at fixed times."""

    def paced(self, values: list[bytes]) -> Iterable[bytes]:
        return at_fixed_times(values)


class Buffer(_Sending):
    """Records that wait for a stopped broker, with the future of each kept."""

    more: ClassVar[dict[str, Any]] = {"buffer_memory": 1 << 30}

    def __init__(self, load: Workload) -> None:
        super().__init__(load)
        self.load = load

    def run(self, meter: Meter) -> int:
        futures: list[Any] = [None] * len(self.values)
        send, topic = self.producer.send, self.topic
        meter.start(skipped=1)
        with meter.buffering(self.load.broker_pid, len(futures), self.load.size):
            for number, value in enumerate(self.values):
                futures[number] = send(topic, value)
        self.producer.flush(_PATIENCE)
        delivered = sum(1 for future in futures if future.exception() is None)
        meter.stop()
        return 1 + delivered


class Consume(Session):
    """Reads all records of the topic, from their beginning."""

    def __init__(self, load: Workload) -> None:
        self.records = load.records
        self.partitions = [TopicPartition(load.topic, each) for each in range(load.partitions)]
        self.consumer = Consumer(**consumer_options(load))
        self.consumer.assign(self.partitions)

    def close(self) -> None:
        self.consumer.close()

    def run(self, meter: Meter) -> Consumed:
        self.consumer.seek_to_beginning(*self.partitions)
        records = value_bytes = offset_sum = 0
        while records < self.records:
            polled: Any = self.consumer.poll(1.0)
            if not records:
                meter.start(skipped=len(polled))
            for record in polled:
                value_bytes += len(record.value)
                offset_sum += record.offset
            records += len(polled)
        meter.stop()
        return Consumed(records, value_bytes, offset_sum)


class ConsumeColumns(Consume):
    """Arrow columns instead of objects; the sums are Arrow's too."""

    def run(self, meter: Meter) -> Consumed:
        import pyarrow.compute as pc  # noqa: PLC0415 - the other kclient cells do not pay for it

        self.consumer.seek_to_beginning(*self.partitions)
        records = value_bytes = offset_sum = 0
        while records < self.records:
            columns = self.consumer.poll_columns(1.0)
            if not records:
                meter.start(skipped=columns.num_rows)
            if columns.num_rows:
                values: Any = columns["value"]
                value_bytes += int(pc.sum(pc.binary_length(values)).as_py() or 0)
                offset_sum += int(pc.sum(columns["offset"]).as_py() or 0)
            records += columns.num_rows
        meter.stop()
        return Consumed(records, value_bytes, offset_sum)
