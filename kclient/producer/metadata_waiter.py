"""Wait for the partitions of a topic."""

from collections.abc import Callable

from kclient.client.client_metadata import ProducerMetadata
from kclient.common.errors import BootstrapError, KafkaTimeoutError
from kclient.common.metrics import Sensor
from kclient.common.runtime import Clock
from kclient.producer.callback_runner import CallbackRunner
from kclient.producer.errors import UnknownPartitionError
from kclient.producer.record_accumulator import RecordAccumulator
from kclient.producer.topic_info import TopicInfo


class MetadataWaiter:
    """Waits until metadata names a topic's partitions (Kafka: KafkaProducer.waitOnMetadata)."""

    def __init__(
        self,
        metadata: ProducerMetadata,
        accumulator: RecordAccumulator,
        wakeup: Callable[[], None],
        bootstrap_error: Callable[[], BootstrapError | None],
        runner: CallbackRunner,
        clock: Clock,
        wait_time: Sensor,
    ) -> None:
        self._metadata = metadata
        self._accumulator = accumulator
        self._wakeup = wakeup
        self._bootstrap_error = bootstrap_error
        self._runner = runner
        self._clock = clock
        self._wait_time = wait_time

    def await_topic(self, topic: str, partition: int | None, max_wait_ms: float) -> TopicInfo:
        """Return the topic's queues once its partitions are known.

        Args:
            topic: Topic name, checked.
            partition: Partition that must exist, or None.
            max_wait_ms: Time to wait at most.

        Raises:
            KafkaTimeoutError: No broker described the topic, or the partition, in time;
                BootstrapError if no broker was reachable. Metadata was requested, also if
                `max_wait_ms` is 0.
            UnknownPartitionError: The topic has fewer partitions.
            TopicAuthorizationError: Not authorized to access the topic.
            ClosedError: The producer was closed meanwhile.
        """
        started_ms = now_ms = self._clock.monotonic_ms()
        info = self._accumulator.topic_info(topic)
        asked_for_partition = False
        try:
            while True:
                self._metadata.add_topic(topic, now_ms)
                cluster = self._metadata.cluster()
                count = info.partition_count if info.cluster is cluster else info.refresh(cluster)
                if count and (partition is None or partition < count):
                    return info
                self._metadata.maybe_raise_error_for_topic(topic)
                if partition is not None and count and asked_for_partition:
                    raise UnknownPartitionError(topic, partition, count)
                asked_for_partition = count > 0
                # Also if this call does not wait: the next one may find the topic.
                version = self._metadata.request_update_for_topic(topic)
                self._wakeup()
                left_ms = started_ms + max_wait_ms - now_ms
                if left_ms <= 0 or self._runner.inside():
                    raise self._timeout(topic, partition, count, now_ms - started_ms)
                self._metadata.await_update(version, left_ms / 1000.0)
                now_ms = self._clock.monotonic_ms()
        finally:
            self._wait_time.record((now_ms - started_ms) * 1e6)

    def _timeout(
        self, topic: str, partition: int | None, count: int, waited_ms: float
    ) -> KafkaTimeoutError:
        what = f"topic {topic!r}: not described by any broker within {waited_ms:.0f} ms"
        if count:
            what = (
                f"partition {partition} of topic {topic!r}: not known within {waited_ms:.0f} ms;"
                f" the topic had {count} partitions"
            )
        unreached = self._bootstrap_error()
        if self._metadata.cluster().is_bootstrap and unreached is not None:
            error: KafkaTimeoutError = BootstrapError(f"{what}; {unreached}")
            error.__cause__ = unreached.__cause__
            return error
        reason = self._metadata.topic_error(topic)
        error = KafkaTimeoutError(f"{what}" if reason is None else f"{what}; {reason}")
        error.__cause__ = reason
        return error
