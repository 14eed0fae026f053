"""kclient.aio, by its public names alone."""

from abc import abstractmethod
from typing import Any, ClassVar

from integration.benchmarks.drivers.event_loops import measure_latencies, runner
from integration.benchmarks.drivers.kclient_driver import (
    Session,
    consumer_options,
    producer_options,
)
from integration.benchmarks.meter import Meter
from integration.benchmarks.workload import Consumed, Workload, values_of
from kclient import TopicPartition
from kclient.aio import Consumer, Producer

_PATIENCE = 120.0


class _InLoop(Session):
    """Session whose client serves the event loop of a runner."""

    client: Any

    def __init__(self, load: Workload) -> None:
        self.load = load
        self.runner = runner(load)

    def run(self, meter: Meter) -> int | Consumed:
        return self.runner.run(self.measured(meter))

    @abstractmethod
    async def measured(self, meter: Meter) -> int | Consumed:
        """Moves the records, and returns their number with that of the first record."""

    def close(self) -> None:
        self.runner.run(self.client.close())
        self.runner.close()


class Produce(_InLoop):
    """Keeps the future of each record and looks at it in the end."""

    more: ClassVar[dict[str, Any]] = {}

    def __init__(self, load: Workload) -> None:
        super().__init__(load)
        first, *self.values = values_of(load)
        self.client = Producer(**producer_options(load, **self.more))
        self.runner.run(self.client.send_and_wait(load.topic, first))

    async def measured(self, meter: Meter) -> int:
        futures: list[Any] = []
        send, keep, topic = self.client.send, futures.append, self.load.topic
        meter.start(skipped=1)
        for value in self.values:
            keep(await send(topic, value))
        await self.client.flush(_PATIENCE)
        delivered = sum(1 for future in futures if future.done() and future.exception() is None)
        meter.stop()
        return 1 + delivered


class Latency(Produce):
    """Each record when the one before it is acknowledged."""

    more: ClassVar[dict[str, Any]] = {"linger_ms": 0}

    async def measured(self, meter: Meter) -> int:
        send_and_wait, topic = self.client.send_and_wait, self.load.topic
        return await measure_latencies(
            lambda value: send_and_wait(topic, value), self.values, self.load, meter
        )


class Consume(_InLoop):
    """Reads all records of the topic, from their beginning, in batches."""

    def __init__(self, load: Workload) -> None:
        super().__init__(load)
        self.partitions = [TopicPartition(load.topic, each) for each in range(load.partitions)]
        self.client = Consumer(**consumer_options(load))
        self.client.assign(self.partitions)

    async def measured(self, meter: Meter) -> Consumed:
        self.client.seek_to_beginning(*self.partitions)
        records = value_bytes = offset_sum = 0
        while records < self.load.records:
            polled: Any = await self.client.poll(1.0)
            if not records:
                meter.start(skipped=len(polled))
            for record in polled:
                value_bytes += len(record.value)
                offset_sum += record.offset
            records += len(polled)
        meter.stop()
        return Consumed(records, value_bytes, offset_sum)


class ConsumeEach(Consume):
    """Iterates over the records."""

    async def measured(self, meter: Meter) -> Consumed:
        self.client.seek_to_beginning(*self.partitions)
        records = value_bytes = offset_sum = 0
        async for record in self.client:
            records += 1
            if records == 1:
                meter.start(skipped=1)
            value_bytes += len(record.value)
            offset_sum += record.offset
            if records == self.load.records:
                break
        meter.stop()
        return Consumed(records, value_bytes, offset_sum)


class ConsumeColumns(Consume):
    """Arrow columns instead of objects; the sums are Arrow's too."""

    async def measured(self, meter: Meter) -> Consumed:
        import pyarrow.compute as pc  # noqa: PLC0415 - the other kclient cells do not pay for it

        self.client.seek_to_beginning(*self.partitions)
        records = value_bytes = offset_sum = 0
        while records < self.load.records:
            columns: Any = await self.client.poll_columns(1.0)
            if not records:
                meter.start(skipped=columns.num_rows)
            if columns.num_rows:
                value_bytes += int(pc.sum(pc.binary_length(columns["value"])).as_py() or 0)
                offset_sum += int(pc.sum(columns["offset"]).as_py() or 0)
            records += columns.num_rows
        meter.stop()
        return Consumed(records, value_bytes, offset_sum)
