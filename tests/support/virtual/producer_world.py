"""Parts of a producer in virtual time, with a scripted client and a model of a broker.

`ProducerWorld` holds the parts and steps the sender. `ScriptedClient` keeps what was sent until
the test sends the response. `ModelPartition` is what a broker's log does with batches: it checks
sequences as Kafka's ProducerAppendInfo does, and remembers what it holds.
"""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from kclient.client.api_versions import ApiVersions, NodeApiVersions
from kclient.client.client_metadata import ProducerMetadata
from kclient.client.client_request import (
    ClientRequest,
    ClientResponse,
    RequestBuilder,
    ResponseCallback,
)
from kclient.client.cluster import Cluster
from kclient.client.exponential_backoff import ExponentialBackoff
from kclient.client.network_client import NetworkClient
from kclient.common.broker_errors import UnsupportedVersionError
from kclient.common.errors import BootstrapError, DisconnectedError, KafkaError
from kclient.common.metrics import Metrics
from kclient.common.runtime import Runtime
from kclient.common.types import Node, TopicPartition
from kclient.common.waiting import run_steps
from kclient.producer.batch_delivery import Segment
from kclient.producer.batch_drainer import oldest_batch
from kclient.producer.buffer_pool import BufferPool
from kclient.producer.callback_runner import CallbackRunner
from kclient.producer.delivery_future import DeliveryFuture
from kclient.producer.produce_request_builder import ProduceRequestBuilder
from kclient.producer.produce_request_result import OnDelivery
from kclient.producer.producer_config import PRODUCER_CONFIG
from kclient.producer.producer_metrics import ProducerMetrics
from kclient.producer.record_accumulator import RecordAccumulator
from kclient.producer.rows import Rows, SingleRecord
from kclient.producer.sender import Sender
from kclient.producer.sequence_manager import SequenceManager
from kclient.producer.topic_info import SlowNodes
from kclient.producer.transaction_manager import TransactionManager
from kclient.protocol.message import Request, Response
from kclient.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from kclient.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kclient.protocol.messages.produce import (
    LeaderIdAndEpoch,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from kclient.record import CompressionType, RecordBatch, encode_headers, increment_sequence
from kclient.testing.virtual.virtual_clock import VirtualClock
from tests.support.virtual.virtual_home import VirtualHome

TOPIC = "t"
PRODUCE_VERSION = 12


@dataclass
class Held:
    """A batch in a model's log."""

    base_offset: int
    producer_id: int
    epoch: int
    first_sequence: int
    last_sequence: int
    values: list[bytes]


@dataclass
class ModelPartition:
    """A leader's log with Kafka's check of sequences, and refusals to order."""

    log: list[Held] = field(default_factory=list)
    next_offset: int = 0
    states: dict[int, deque[Held]] = field(default_factory=dict)
    max_batch_bytes: int = 1 << 30

    def values(self) -> list[bytes]:
        return [value for held in self.log for value in held.values]

    def append(self, records: memoryview) -> tuple[int, int]:
        """Returns the error code and the base offset."""
        batch = RecordBatch(records)
        batch.ensure_valid()
        if len(records) > self.max_batch_bytes:
            return 10, -1
        error, known = self._check(batch)
        if error or known is not None:
            return error, -1 if known is None else known.base_offset
        held = Held(
            self.next_offset,
            batch.producer_id,
            batch.producer_epoch,
            batch.base_sequence,
            batch.last_sequence,
            [bytes(record.value or b"") for record in batch.records()],
        )
        self.next_offset += batch.count
        self.log.append(held)
        if held.producer_id >= 0:
            state = self.states.get(held.producer_id)
            if state is None or state[-1].epoch != held.epoch:
                state = self.states[held.producer_id] = deque(maxlen=5)
            state.append(held)
        return 0, held.base_offset

    def _check(self, batch: RecordBatch) -> tuple[int, Held | None]:
        state = self.states.get(batch.producer_id)
        if not state or batch.producer_id < 0:
            return 0, None  # it accepts any sequence of a producer that it knows nothing of
        last = state[-1]
        if batch.producer_epoch < last.epoch:
            return 47, None
        if batch.producer_epoch > last.epoch:
            return (0, None) if batch.base_sequence == 0 else (45, None)
        for held in state:
            if (held.first_sequence, held.last_sequence) == (
                batch.base_sequence,
                batch.last_sequence,
            ):
                return 0, held
        expected = increment_sequence(last.last_sequence, 1)
        return (0, None) if batch.base_sequence == expected else (45, None)


@dataclass
class Sent:
    """A request on the wire."""

    request: ClientRequest
    body: Request
    memory: list[tuple[memoryview, bytes]] = field(default_factory=list)
    response: Response | None = None
    processed: bool = False

    def is_untouched(self) -> bool:
        """Returns whether the memory it is sent from still holds what it held at first.

        A socket may read it until the response is there, however often it is asked to write.
        """
        return all(view == held for view, held in self.memory)


class ScriptedClient:
    """The methods of a network client that the sender uses; its requests wait for the test."""

    def __init__(self, clock: VirtualClock, max_in_flight: int = 5) -> None:
        self.api_versions = ApiVersions()
        self.wire: dict[str, deque[Sent]] = {}
        self.down: set[int] = set()
        self.woken = 0
        self.polled_ms: list[float] = []
        self.closed = False
        self.on_poll: Callable[[], None] = lambda: None
        self.unreached: BootstrapError | None = None
        self._clock = clock
        self._max_in_flight = max_in_flight
        self._ended: deque[tuple[ClientRequest, ClientResponse]] = deque()
        self._correlation_id = 0

    def ready(self, node: Node, now_ms: float) -> bool:
        return node.id not in self.down and len(self._queue(str(node.id))) < self._max_in_flight

    def connection_failed(self, node: Node) -> bool:
        return node.id in self.down

    def poll_delay_ms(self, node: Node, now_ms: float) -> float:
        return 50.0 if node.id in self.down else float("inf")

    def least_loaded_node(self, now_ms: float) -> Node | None:
        return None if 0 in self.down else Node(0, "h", 1)

    def new_client_request(
        self,
        node_id: str,
        builder: RequestBuilder,
        now_ms: float,
        *,
        expect_response: bool = True,
        request_timeout_ms: float | None = None,
        callback: ResponseCallback | None = None,
    ) -> ClientRequest:
        self._correlation_id += 1
        return ClientRequest(
            node_id,
            builder,
            self._correlation_id,
            now_ms,
            expect_response,
            request_timeout_ms or 30_000.0,
            callback,
        )

    def send(self, request: ClientRequest, now_ms: float) -> None:
        builder = request.builder
        version = min(builder.latest_allowed_version, builder.request_type.max_version)
        body = builder.build(version)
        # As bytes: bytes in flight must not change when the producer continues.
        parts: list[Any] = list(body.encode(version))
        copied = type(body).decode(b"".join(parts), version)
        memory = [(view, bytes(view)) for view in _records_of(body)]
        self._queue(request.destination).append(Sent(request, copied, memory))
        if not request.expect_response:
            self.end(request.destination)

    def write_ahead(self, now_ms: float) -> None:
        """Do nothing: `send` has taken the request."""

    def poll(self, timeout_ms: float, now_ms: float) -> list[ClientResponse]:
        self.polled_ms.append(timeout_ms)
        self.on_poll()
        reported = []
        while self._ended:
            request, response = self._ended.popleft()
            reported.append(response)
            if request.callback is not None:
                request.callback(response)
        return reported

    def bootstrap_error(self) -> BootstrapError | None:
        return self.unreached

    def wakeup(self) -> None:
        self.woken += 1

    def in_flight_request_count(self) -> int:
        return sum(map(len, self.wire.values()))

    def close(self) -> None:
        self.closed = True

    # -- for the test -----------------------------------------------------------------------------

    def requests(self, kind: type[Request] = ProduceRequest) -> list[Sent]:
        """Returns what is on the wire."""
        return [sent for queue in self.wire.values() for sent in queue if type(sent.body) is kind]

    def end(
        self,
        node: str,
        response: Response | None = None,
        *,
        error: KafkaError | None = None,
        mismatch: UnsupportedVersionError | None = None,
    ) -> None:
        """Lets the oldest request of a node end; its callback runs in the next poll."""
        sent = self._queue(node).popleft()
        lost = isinstance(error, DisconnectedError)
        self._ended.append(
            (
                sent.request,
                ClientResponse(
                    sent.body.api_key,
                    PRODUCE_VERSION,
                    sent.request.correlation_id,
                    node,
                    sent.request.created_ms,
                    self._clock.now_ms,
                    response,
                    error or mismatch,
                    was_disconnected=lost,
                    version_mismatch=mismatch,
                    callback=sent.request.callback,
                ),
            )
        )

    def disconnect(self, node: str) -> None:
        """Fail every request of a node without a response."""
        while self._queue(node):
            self.end(node, error=DisconnectedError(f"node {node}: the connection broke"))

    def _queue(self, node: str) -> deque[Sent]:
        return self.wire.setdefault(node, deque())


@dataclass
class WorldOptions:
    """What a test may want to be different."""

    partitions: int = 1
    nodes: int = 1
    batch_size: int = 16_384
    linger_ms: float = 0.0
    delivery_timeout_ms: float = 120_000.0
    buffer_memory: int = 1 << 22
    max_request_size: int = 1 << 20
    max_in_flight: int = 5
    acks: int = -1
    idempotence: bool = True
    retries: int = 2**31 - 1
    compression: CompressionType = CompressionType.NONE
    transactional_id: str | None = None
    transaction_version: int = 2
    topic_id: bytes = b"t" * 16


class ProducerWorld:
    """The parts of a producer, wired as in production but for the client."""

    def __init__(self, options: WorldOptions | None = None) -> None:
        self.options = options = options or WorldOptions()
        self.config = PRODUCER_CONFIG.parse({"bootstrap_servers": "broker:9092"}).with_values(
            acks=options.acks,
            batch_size=options.batch_size,
            compression_type=options.compression,
            delivery_timeout_ms=options.delivery_timeout_ms,
            linger_ms=options.linger_ms,
            max_in_flight_requests_per_connection=options.max_in_flight,
            max_request_size=options.max_request_size,
            retries=options.retries,
            transactional_id=options.transactional_id,
        )
        home = VirtualHome()
        self.runtime = home.runtime
        self.clock = clock = home.clock
        self.client = ScriptedClient(clock, options.max_in_flight)
        self.metadata = ProducerMetadata(self.runtime)
        self.metrics = ProducerMetrics(
            Metrics(clock, self.runtime.tasks), self.runtime.tasks.lock()
        )
        self.runner = CallbackRunner(self.runtime.tasks, self.metrics.callback_errors)
        self.transactions = self._sequence_manager(options)
        self.pool = BufferPool(
            options.buffer_memory,
            options.batch_size,
            clock,
            self.runtime.tasks,
            self.metrics.buffer_wait.record,
            self.metrics.buffer_exhausted,
            self.client.wakeup,
        )
        self.accumulator = self._accumulator(self.runtime, options)
        self.sender = self._sender(options)
        self._loop = self.sender.steps()
        self.broker = [ModelPartition() for _ in range(options.partitions)]
        self.leaders: dict[int, int] = {
            partition: partition % options.nodes for partition in range(options.partitions)
        }
        self.leader_epoch = 1
        self.update_metadata()
        self.set_transaction_version(options.transaction_version)
        if self.transactions is not None and options.transactional_id is None:
            self.init_producer_id()

    def network_client(self) -> NetworkClient:
        """Return the client, for the parts of a producer."""
        return cast("NetworkClient", self.client)

    def _sequence_manager(self, options: WorldOptions) -> SequenceManager | None:
        if options.transactional_id is not None:
            return TransactionManager(options.transactional_id, self.runtime.tasks, lambda: None)
        return SequenceManager() if options.idempotence else None

    def set_transaction_version(self, level: int, epoch: int = 1) -> None:
        """Finalizes transaction.version, as all nodes report it."""
        self.client.api_versions.update(
            "0", NodeApiVersions("0", {}, {"transaction.version": level}, epoch)
        )

    def _accumulator(self, runtime: Runtime, options: WorldOptions) -> RecordAccumulator:
        return RecordAccumulator(
            self.config,
            self.pool,
            runtime,
            self.runner,
            ExponentialBackoff(100, 1000, lambda: 0.0),
            SlowNodes(0),
            self.client.wakeup,
            oldest_batch if self.transactions is None else self.transactions.next_batch,
        )

    def _sender(self, options: WorldOptions) -> Sender:
        return Sender(
            self.config,
            self.network_client(),
            self.metadata,
            self.accumulator,
            self.transactions,
            self.metrics,
            self.runtime,
        )

    # -- the cluster ------------------------------------------------------------------------------

    def update_metadata(self, topic_id: bytes | None = None, error_code: int = 0) -> None:
        """Sends metadata with the leaders, or with the errors of partitions without one."""
        self.options.topic_id = topic_id or self.options.topic_id
        self.metadata.add_topic(TOPIC, self.clock.now_ms)
        response = MetadataResponse(
            brokers=[
                MetadataResponseBroker(node_id=node, host="h", port=1 + node)
                for node in range(self.options.nodes)
            ],
            topics=[
                MetadataResponseTopic(
                    name=TOPIC,
                    error_code=error_code,
                    topic_id=self.options.topic_id,
                    partitions=[
                        MetadataResponsePartition(
                            partition_index=partition,
                            leader_id=leader,
                            leader_epoch=self.leader_epoch,
                        )
                        for partition, leader in self.leaders.items()
                    ],
                )
            ],
        )
        ask = self.metadata.next_request(self.clock.now_ms)
        self.metadata.update(ask, response, self.clock.now_ms)

    def cluster(self) -> Cluster:
        return self.metadata.cluster()

    def init_producer_id(self, producer_id: int = 7, epoch: int = 0) -> None:
        """Steps until the producer asked for an id, and gives it one."""
        self.step()
        (sent,) = self.client.requests(InitProducerIdRequest)
        self.client.end(
            sent.request.destination,
            InitProducerIdResponse(producer_id=producer_id, producer_epoch=epoch),
        )
        self.step()

    # -- the producer -----------------------------------------------------------------------------

    def send(
        self,
        value: bytes,
        partition: int | None = 0,
        *,
        key: bytes | None = None,
        on_delivery: OnDelivery | None = None,
        max_wait_ms: float = 0.0,
    ) -> DeliveryFuture:
        """Appends a record."""
        info = self.accumulator.topic_info(TOPIC)
        info.refresh(self.cluster())
        queue = None if partition is None else info.queues[partition]
        record = SingleRecord(self.clock.wall_ms(), key, value, encode_headers(None), on_delivery)
        steps = self.accumulator.append(info, queue, record, max_wait_ms)
        return run_steps(steps, self.clock)

    def send_rows(self, values: list[bytes | None], partition: int | None = 0) -> list[Segment]:
        """Appends many records."""
        info = self.accumulator.topic_info(TOPIC)
        info.refresh(self.cluster())
        segments: list[Segment] = []
        queue = None if partition is None else info.queues[partition]
        rows = Rows(1, None, values, None)
        while not rows.all_taken():
            steps = self.accumulator.append(info, queue, rows, 0.0)
            segments.append(run_steps(steps, self.clock))
        return segments

    def step(self, advance_ms: float = 0.0) -> bool:
        """Runs the sender up to its next wait, after some time; returns False at its end."""
        self.clock.now_ms += advance_ms
        try:
            wait = next(self._loop)
            try:
                wait.block(self.clock)
            except Exception as error:  # noqa: BLE001 (raised again by the sender)
                self._loop.throw(error)
        except StopIteration:
            return False
        return True

    # -- the broker -------------------------------------------------------------------------------

    def process(self, sent: Sent, errors: Mapping[int, int] | None = None) -> ProduceResponse:
        """Lets a broker act on a request, refusing some partitions with error codes."""
        assert isinstance(sent.body, ProduceRequest)
        responded = []
        for topic in sent.body.topic_data:
            for data in topic.partition_data:
                code = (errors or {}).get(data.index, 0)
                offset = -1
                if not code:
                    assert isinstance(data.records, memoryview)
                    code, offset = self.broker[data.index].append(data.records)
                responded.append(
                    PartitionProduceResponse(
                        index=data.index, error_code=code, base_offset=offset, log_start_offset=0
                    )
                )
        sent.processed = True
        sent.response = ProduceResponse(
            responses=[TopicProduceResponse(name=TOPIC, partition_responses=responded)]
        )
        return sent.response

    def respond_to_all(self, node: str = "0", errors: Mapping[int, int] | None = None) -> int:
        """Handle all requests of a node, and let the producer process the responses."""
        count = 0
        for sent in list(self.client.wire.get(node, ())):
            self.client.end(node, self.process(sent, errors))
            count += 1
        self.step()
        return count

    def respond_with_error(self, code: int, node: str = "0", *, new_leader: int = -1) -> None:
        """Respond to the oldest request of a node with one error for all its partitions."""
        sent = self.client.wire[node][0]
        assert isinstance(sent.body, ProduceRequest)
        leader = LeaderIdAndEpoch(leader_id=new_leader, leader_epoch=self.leader_epoch + 1)
        self.client.end(
            node,
            ProduceResponse(
                responses=[
                    TopicProduceResponse(
                        name=TOPIC,
                        partition_responses=[
                            PartitionProduceResponse(
                                index=data.index,
                                error_code=code,
                                base_offset=-1,
                                log_start_offset=0,
                                current_leader=leader if new_leader >= 0 else LeaderIdAndEpoch(),
                            )
                            for data in topic.partition_data
                        ],
                    )
                    for topic in sent.body.topic_data
                ]
            ),
        )
        self.step()

    def settle(self, rounds: int = 60) -> None:
        """Let a broker respond until no request is in flight."""
        for _ in range(rounds):
            if not len(self.accumulator.incomplete) and not self.client.in_flight_request_count():
                return
            self.step()
            for node in list(self.client.wire):
                self.respond_to_all(node)
            self.clock.now_ms += 300
        raise AssertionError(f"not idle: {self.accumulator.incomplete.all()}")


def builder_of(sent: Sent) -> ProduceRequestBuilder:
    """Returns what made a request."""
    builder = sent.request.builder
    assert isinstance(builder, ProduceRequestBuilder)
    return builder


def tp(partition: int = 0) -> TopicPartition:
    return TopicPartition(TOPIC, partition)


def world(**options: object) -> ProducerWorld:
    return ProducerWorld(WorldOptions(**options))  # type: ignore[arg-type]  # by name


def noting(seen: list[Any], what: object) -> Callable[..., None]:
    """Returns a callback that notes what it was made with."""
    return lambda *_: seen.append(what)


def sent_sequences(of: ProducerWorld) -> list[int]:
    return [
        RecordBatch(records).base_sequence
        for sent in of.client.requests()
        for records in _records_of(sent.body)
    ]


def _records_of(body: Request) -> list[memoryview]:
    return [
        data.records
        for topic in (body.topic_data if isinstance(body, ProduceRequest) else ())
        for data in topic.partition_data
        if isinstance(data.records, memoryview)
    ]
