"""Probe: one record is produced and consumed, which also shows the skew of the clocks."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from kclient.admin.admin_client import AdminClient
from kclient.admin.new_topic import NewTopic
from kclient.cli.doctor.report import Findings, Status
from kclient.common.errors import KafkaError
from kclient.common.types import RecordMetadata, TopicPartition
from kclient.consumer.consumer import Consumer
from kclient.network.system_runtime import system_runtime
from kclient.producer.producer import Producer

_LARGE_SKEW_MS = 1_000
_VALUE = b"kclient doctor"


class Probe:
    """Produces a record to a topic and consumes it.

    Args:
        report: Receives the findings.
        of_admin: Options of an admin client.
        of_producer: Options of a producer.
        of_consumer: Options of a consumer.
        timeout: Longest wait of a step, seconds.
    """

    def __init__(
        self,
        report: Findings,
        of_admin: Mapping[str, object],
        of_producer: Mapping[str, object],
        of_consumer: Mapping[str, object],
        timeout: float,
    ) -> None:
        self._report = report
        self._of_admin = of_admin
        self._of_producer = of_producer
        self._of_consumer = of_consumer
        self._timeout = timeout

    def run(self, topic: str | None) -> None:
        """Produce and consume, in a topic of the user or a temporary one."""
        if topic is not None:
            self._produce_and_consume(topic)
            return
        with self._temporary_topic() as made:
            if made is not None:
                self._produce_and_consume(made)

    @contextmanager
    def _temporary_topic(self) -> Iterator[str | None]:
        """Create a topic for the time of the probe."""
        name = f"kclient-doctor-{system_runtime().random.randbytes(6).hex()}"
        # The broker's clock sets the timestamps, which shows the skew.
        configs = {"message.timestamp.type": "LogAppendTime"}
        with AdminClient(self._of_admin) as admin:
            try:
                admin.create_topics(NewTopic(name, 1, configs=configs))
            except KafkaError as error:
                remedy = "name a topic that this user may write and read, by --topic"
                self._report.add(Status.FAILED, "produce", name, f"{error}", remedy)
                yield None
                return
            try:
                yield name
            finally:
                admin.delete_topics(name)

    def _produce_and_consume(self, topic: str) -> None:
        try:
            sent = self._produce(topic)
        except KafkaError as error:
            remedy = "check that the topic exists, and that the user may WRITE to it"
            self._report.add(Status.FAILED, "produce", topic, f"{error}", remedy)
            return
        self._consume(sent)

    def _produce(self, topic: str) -> RecordMetadata:
        with AdminClient(self._of_admin) as admin:
            admin.describe_topics(topic)  # a producer would create the topic
        with Producer(self._of_producer) as producer:
            producer.partitions_for(topic)
            started, started_ms = time.monotonic(), time.time() * 1000
            sent = producer.send(topic, _VALUE).result(self._timeout)
            ended_ms = time.time() * 1000
            took_ms = (time.monotonic() - started) * 1000
        found = f"partition {sent.partition}, offset {sent.offset} ({took_ms:.0f} ms)"
        self._report.add(Status.OK, "produce", topic, found)
        self._show_skew(topic, sent.timestamp_ms, started_ms, ended_ms)
        return sent

    def _show_skew(self, topic: str, appended_ms: int, started_ms: float, ended_ms: float) -> None:
        ahead_ms = max(appended_ms - ended_ms, 0) or min(appended_ms - started_ms, 0)
        if abs(ahead_ms) < _LARGE_SKEW_MS:
            self._report.add(Status.OK, "clock", topic, "no skew between broker and client")
            return
        where = "ahead of" if ahead_ms > 0 else "behind"
        found = f"the broker's clock is {abs(ahead_ms) / 1000:.1f} s {where} this machine's"
        remedy = "synchronize the clocks: retention, tokens and certificates depend on them"
        self._report.add(Status.WARNING, "clock", topic, found, remedy)

    def _consume(self, sent: RecordMetadata) -> None:
        partition = TopicPartition(sent.topic, sent.partition)
        until = time.monotonic() + self._timeout
        try:
            with Consumer(self._of_consumer) as consumer:
                consumer.assign([partition])
                consumer.seek(partition, sent.offset)
                while (left := until - time.monotonic()) > 0:
                    for record in consumer.poll(left):
                        if record.offset == sent.offset:
                            found = f"the record is at offset {record.offset}"
                            self._report.add(Status.OK, "consume", f"{partition}", found)
                            return
            found = f"no record within {self._timeout:g} s"
        except KafkaError as error:
            found = f"{error}"
        remedy = "check that the user may READ the topic, and the logs of the partition's leader"
        self._report.add(Status.FAILED, "consume", f"{partition}", found, remedy)
