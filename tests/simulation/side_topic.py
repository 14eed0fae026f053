"""Application of a topic that is deleted and recreated while its clients run."""

from collections.abc import Callable

from kclient import AdminClient, Consumer, NewTopic, Producer, TopicPartition
from kclient.common.broker_errors import TopicExistsError, UnknownTopicOrPartitionError
from kclient.common.errors import KafkaError
from tests.simulation.application import SERVERS, BlockingApplication
from tests.simulation.history import Crashed, Fault
from tests.simulation.scenario import API_TIMEOUT_MS, REQUEST_TIMEOUT_MS, SIDE_TOPIC

_PARTITION = TopicPartition(SIDE_TOPIC, 0)
_SEND_S = 2.0
_USABLE_S = 10.0
"""Limit of the time from the end of the faults until the topic is usable."""


class SideTopicApplication(BlockingApplication):
    """Process with a producer, a consumer and an admin client that outlive their topic."""

    def block(self) -> None:
        """Write, read, delete and create until `stopping` is set; then check that all works."""
        with (
            AdminClient(
                bootstrap_servers=SERVERS,
                request_timeout_ms=REQUEST_TIMEOUT_MS,
                default_api_timeout_ms=API_TIMEOUT_MS,
                runtime=self.process.runtime,
            ) as admin,
            Producer(
                bootstrap_servers=SERVERS,
                request_timeout_ms=REQUEST_TIMEOUT_MS,
                delivery_timeout_ms=2_000,
                max_block_ms=500,
                runtime=self.process.runtime,
            ) as producer,
            Consumer(
                bootstrap_servers=SERVERS,
                request_timeout_ms=REQUEST_TIMEOUT_MS,
                auto_offset_reset="earliest",
                runtime=self.process.runtime,
            ) as consumer,
        ):
            consumer.assign([_PARTITION])
            least = self.lot.randint(0, 1)  # 1: the clients always receive that it is missing
            self._create(admin)
            while not self.stopping:
                self._use(producer, consumer)
                if self.lot.random() < 0.3:
                    self._delete(admin)
                    for _ in range(self.lot.randint(least, 3)):
                        if not self.stopping:
                            self._use(producer, consumer)
                    self._create(admin)
            self._check(admin, producer, consumer)

    def _use(self, producer: Producer, consumer: Consumer) -> None:
        self._tolerant(lambda: producer.send(SIDE_TOPIC, b"x").result(_SEND_S))
        self._tolerant(lambda: consumer.poll(self.lot.uniform(0.0, 0.5)))
        self.process.sleep(self.lot.uniform(0.0, 0.5))

    def _create(self, admin: AdminClient) -> None:
        self._tolerant(lambda: admin.create_topics([NewTopic(SIDE_TOPIC, 1, 1)]))

    def _delete(self, admin: AdminClient) -> None:
        self.note(Fault, "delete topic", SIDE_TOPIC)
        self._tolerant(lambda: admin.delete_topics([SIDE_TOPIC]))

    def _tolerant(self, do: Callable[[], object]) -> None:
        try:
            do()
        except (TopicExistsError, UnknownTopicOrPartitionError):
            pass  # the response to an earlier attempt was lost
        except KafkaError as error:
            if not error.retriable:
                self.note(Crashed, f"{SIDE_TOPIC}: {type(error).__name__}: {error}")

    def _check(self, admin: AdminClient, producer: Producer, consumer: Consumer) -> None:
        """Check that the topic exists, and that the clients still work with it."""
        try:
            admin.create_topics([NewTopic(SIDE_TOPIC, 1, 1)]).raise_for_errors()
        except TopicExistsError:
            pass  # the last `_create` succeeded
        except KafkaError as error:
            self.note(Crashed, f"{SIDE_TOPIC} was not created: {type(error).__name__}: {error}")
            return
        problem = self._try_to_use(producer, consumer)
        if problem:
            self.note(Crashed, f"{SIDE_TOPIC} cannot be used: {problem}")

    def _try_to_use(self, producer: Producer, consumer: Consumer) -> str:
        """Write until the consumer reads one of these records; return what failed, or "".

        A position is kept when its topic is recreated, as in Kafka's consumer: if the log of the
        new topic already reaches it, only later records are read.
        """
        deadline_ms = self._now_ms() + _USABLE_S * 1000.0
        written: set[int] = set()
        error = "no attempt"
        while self._now_ms() < deadline_ms:
            try:
                written.add(producer.send(SIDE_TOPIC, b"last").result(_SEND_S).offset)
            except KafkaError as problem:
                error = str(problem)
            if any(record.offset in written for record in consumer.poll(0.2)):
                return ""
        return f"offsets {sorted(written)} were not read" if written else f"not written: {error}"
