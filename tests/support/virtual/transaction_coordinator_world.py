"""One transaction coordinator in virtual time, with leaders that a test drives."""

from collections.abc import Iterable

from kclient.broker.coordinator.transaction.transaction_coordinator import (
    TransactionConfig,
    TransactionCoordinator,
)
from kclient.broker.coordinator.transaction.transaction_markers import (
    OnMarkers,
    TransactionMarkers,
)
from kclient.broker.coordinator.transaction.transaction_metadata import TransactionMetadata
from kclient.broker.metadata.metadata_image import (
    BrokerRegistration,
    MetadataImage,
    PartitionRegistration,
    TopicImage,
)
from kclient.common.errors import KafkaError
from kclient.common.types import TopicPartition
from kclient.protocol.messages.transactions import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from kclient.record import ProducerIdAndEpoch
from tests.support.virtual.group_world import MemoryLog
from tests.support.virtual.virtual_home import VirtualHome

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
LEADERS = {A0: 1, A1: 2, B0: 1}

Result = ProducerIdAndEpoch | KafkaError


def image(leaders: dict[TopicPartition, int], fenced: Iterable[int] = ()) -> MetadataImage:
    """Return metadata with the leaders of partitions, and the brokers 1 and 2."""
    topics: dict[str, TopicImage] = {}
    for partition, leader in sorted(leaders.items()):
        topic = topics.get(partition.topic) or TopicImage(partition.topic, bytes(16), ())
        led = PartitionRegistration((1, 2), (1, 2), leader, 0, 0)
        topics[partition.topic] = topic._replace(partitions=(*topic.partitions, led))
    brokers = {
        node: BrokerRegistration(node, 0, bytes(16), (), None, node in set(fenced))
        for node in (1, 2)
    }
    return MetadataImage(topics=topics, brokers=brokers)


def response(request: WriteTxnMarkersRequest, code: int = 0) -> WriteTxnMarkersResponse:
    """Return the response of a leader with one code for each marker."""
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=[
                    WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            WritableTxnMarkerPartitionResult(partition_index=each, error_code=code)
                            for each in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in request.markers
        ]
    )


def partitions_of(marker: WritableTxnMarker) -> list[TopicPartition]:
    """Return the partitions that a marker is for."""
    return [
        TopicPartition(topic.name, each)
        for topic in marker.topics
        for each in topic.partition_indexes
    ]


class Leaders:
    """Leaders of the partitions; each responds at once, or when the test lets it.

    Attributes:
        sent: Requests, with their leaders.
        held: Callbacks of requests without a response; None to respond at once.
        code: Error code of each marker.
    """

    def __init__(self) -> None:
        self.sent: list[tuple[int, WriteTxnMarkersRequest]] = []
        self.held: list[tuple[WriteTxnMarkersRequest, OnMarkers]] | None = None
        self.code = 0

    def send(self, leader: int, request: WriteTxnMarkersRequest, on_response: OnMarkers) -> None:
        self.sent.append((leader, request))
        if self.held is None:
            on_response(response(request, self.code))
        else:
            self.held.append((request, on_response))

    def respond(self, code: int = 0) -> None:
        """Respond to the oldest request without a response."""
        assert self.held is not None
        request, on_response = self.held.pop(0)
        on_response(response(request, code))

    def markers(self) -> list[tuple[int, WritableTxnMarker]]:
        """Return all markers that were sent, with their leaders."""
        return [(leader, marker) for leader, request in self.sent for marker in request.markers]


class TransactionWorld:
    """A coordinator with its log, its clock and the leaders.

    Attributes:
        version: Finalized level of transaction.version.
        next_id: Next producer id.
        no_ids: Error of the allocation of producer ids, or None.
    """

    def __init__(self, log: MemoryLog | None = None, **config: int) -> None:
        home = VirtualHome()
        runtime, self.clock = home.runtime, home.clock
        self.version = 2
        self.next_id = 100
        self.no_ids: KafkaError | None = None
        self.image = image(LEADERS)
        self.leaders = Leaders()
        self.log = log or MemoryLog()
        self.markers = TransactionMarkers(runtime.clock, runtime.tasks, lambda: self.image)
        self.markers.send = self.leaders.send
        self.coordinator = TransactionCoordinator(
            TransactionConfig(**config), self.log, runtime, self.markers, lambda: self.version
        )
        self.coordinator.producer_ids = self._new_id
        self.coordinator.runtime.startup()
        self.lead(self.log.leader_epoch)

    def _new_id(self, on_done: object) -> None:
        assert callable(on_done)
        if self.no_ids is not None:
            on_done(self.no_ids)
            return
        self.next_id += 1
        on_done(self.next_id - 1)

    def lead(self, leader_epoch: int) -> None:
        """Become the leader of every partition, and load them."""
        self.log.leader_epoch = leader_epoch
        for partition in range(self.log.partition_count):
            self.coordinator.runtime.on_leadership(partition, leader_epoch)
        self.coordinator.runtime.load_now()
        self.step()

    def resign(self, leader_epoch: int) -> None:
        """Let another broker lead every partition."""
        for partition in range(self.log.partition_count):
            self.coordinator.runtime.on_resignation(partition, leader_epoch)

    def step(self) -> None:
        """Run what is due."""
        self.coordinator.step(self.clock.now_ms)

    def pass_time(self, duration_ms: float) -> None:
        """Let time pass in small steps, each with what is due in it."""
        end = self.clock.now_ms + duration_ms
        while self.clock.now_ms < end:
            self.clock.now_ms = min(end, self.clock.now_ms + 100)
            self.step()

    def init(
        self, given: tuple[int, int] | None = None, *, name: str = "x", timeout_ms: int = 60_000
    ) -> list[Result]:
        """Initialize a producer; the list receives the result."""
        results: list[Result] = []
        producer = None if given is None else ProducerIdAndEpoch(*given)
        self.coordinator.init_producer_id(name, timeout_ms, producer, results.append)
        return results

    def add(
        self,
        producer: tuple[int, int],
        *partitions: TopicPartition,
        name: str = "x",
        client_version: int = 2,
    ) -> list[Result]:
        """Add partitions; the list receives the result."""
        results: list[Result] = []
        self.coordinator.add_partitions(
            name, ProducerIdAndEpoch(*producer), partitions, client_version, results.append
        )
        return results

    def end(
        self,
        producer: tuple[int, int],
        *,
        commits: bool = True,
        name: str = "x",
        client_version: int = 2,
    ) -> list[Result]:
        """End a transaction; the list receives the result."""
        results: list[Result] = []
        self.coordinator.end_txn(
            name, ProducerIdAndEpoch(*producer), client_version, results.append, commits=commits
        )
        return results

    def described(self, name: str = "x") -> TransactionMetadata:
        """Return the transaction of an id."""
        return self.coordinator.describe(name)

    def state(self, name: str = "x") -> str:
        """Return the name of an id's state."""
        return self.described(name).state.label
