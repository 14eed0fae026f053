"""Prefetching of records (Kafka: Fetcher, AbstractFetch)."""

from kclient.client.client_request import ClientResponse
from kclient.client.exponential_backoff import ExponentialBackoff
from kclient.client.metadata import LeaderIdAndEpoch
from kclient.common.broker_errors import FetchSessionTopicIdError, error_of_code
from kclient.common.errors import InvalidReceiveError, KafkaError
from kclient.common.log_context import LogContext
from kclient.common.runtime import Clock, Runtime
from kclient.common.types import Node, TopicPartition
from kclient.consumer.completed_fetch import CompletedFetch, NodeBacklog
from kclient.consumer.consumer_config import ConsumerConfig
from kclient.consumer.consumer_metrics import ConsumerFetchMetrics
from kclient.consumer.consumer_network_client import ConsumerNetworkClient
from kclient.consumer.fetch_buffer import FetchBuffer
from kclient.consumer.fetch_plan import FetchPlan, NodePlan
from kclient.consumer.fetch_session_handler import FetchRequestBuilder, FetchSessionHandler
from kclient.consumer.record_tracer import RecordTracer
from kclient.consumer.request_future import RequestFuture
from kclient.consumer.subscription_state import SubscriptionState
from kclient.protocol.messages.fetch import FetchResponse, PartitionData


class NodeBackoff:
    """Delays the next fetch to a broker after consecutive failures."""

    def __init__(self, backoff: ExponentialBackoff, clock: Clock) -> None:
        self._backoff = backoff
        self._clock = clock
        self._failures: dict[int, int] = {}
        self._until_ms: dict[int, float] = {}

    def failed(self, node_id: int) -> None:
        """Delay the next request to a broker, longer with each consecutive failure."""
        failures = self._failures.get(node_id, 0)
        self._failures[node_id] = failures + 1
        self._until_ms[node_id] = self._clock.monotonic_ms() + self._backoff.backoff(failures)

    def succeeded(self, node_id: int) -> None:
        """Reset the backoff of a broker."""
        self._failures.pop(node_id, None)

    def is_waiting(self, node_id: int, now_ms: float) -> bool:
        """Return whether a broker is in backoff."""
        return now_ms < self._until_ms.get(node_id, 0.0)


class Fetcher:
    """Keeps one fetch in flight to each broker that leads fetchable partitions.

    The next fetch to a broker is sent once half of its last response is consumed. It contains every
    fetchable partition, each from the end of its buffered data. So at most one and a half responses
    per broker are buffered, and the session keeps all partitions.
    """

    def __init__(
        self,
        config: ConsumerConfig,
        runtime: Runtime,
        network: ConsumerNetworkClient,
        subscriptions: SubscriptionState,
        buffer: FetchBuffer,
        metrics: ConsumerFetchMetrics,
        log_context: LogContext,
    ) -> None:
        self._log_context = log_context
        self._log = log_context.logger(__name__)
        self._network = network
        self._metadata = network.metadata
        self._subscriptions = subscriptions
        self._buffer = buffer
        self._plan = FetchPlan(subscriptions, network.metadata.cluster, buffer)
        self._config = config
        self._tracer: RecordTracer | None = None
        self._traced_config = config  # with the deserializers of the tracer
        self._deserializes = config.has_deserializers()
        self._metrics = metrics
        self._backoff = NodeBackoff(network.backoff, runtime.clock)
        self._sessions: dict[int, FetchSessionHandler] = {}
        self._backlogs: dict[int, NodeBacklog] = {}
        # Those from which bytes were consumed since the last `send_fetches`.
        self._moved: dict[int, NodeBacklog] = {}
        self._in_flight: set[int] = set()
        # Consecutive responses that exceeded the receive limit, by broker.
        self._unreceived: dict[int, int] = {}
        self._error: KafkaError | None = None

    def wants_to_send(self) -> bool:
        """Return whether the backlog of a broker has become low since the last `send_fetches`."""
        for node_id, backlog in self._moved.items():
            if node_id not in self._in_flight and backlog.is_low():
                return True
        return False

    def has_unplanned(self) -> bool:
        """Return whether the next `send_fetches` may differ from the last one."""
        return self._subscriptions.has_changes() or self.wants_to_send()

    def set_tracer(self, tracer: RecordTracer | None) -> None:
        """Report fetch responses to a tracer, or to none any more. For any thread."""
        if tracer is not None:
            config = self._config
            self._traced_config = config.with_values(
                key_deserializer=tracer.timed(config.key_deserializer),
                value_deserializer=tracer.timed(config.value_deserializer),
            )
        self._tracer = tracer

    def has_in_flight(self) -> bool:
        """Return whether a fetch is in flight."""
        return bool(self._in_flight)

    def send_fetches(self, now_ms: float) -> int:
        """Queue a fetch to every broker that may be fetched from; return the number of requests.

        Raises:
            InvalidReceiveError: Repeated responses exceed ``receive_message_max_bytes``.
        """
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        self._moved.clear()
        for node_id in self._plan.update(now_ms):
            self._sessions.pop(node_id, None)
        if self._plan.leaderless:
            self._metadata.request_update()
        plans = self._plan.nodes
        ready = [
            plan
            for plan in plans.values()
            if plan.partitions and not self._is_blocked(plan.node, now_ms)
        ]
        for plan in ready:
            self._send(plan)
        return len(ready)

    def close(self) -> int:
        """Queue a request to each broker that closes its session; return the number of requests."""
        queued = 0
        nodes = self._metadata.cluster().nodes
        for node_id, session in self._sessions.items():
            node = nodes.get(node_id)
            data = session.build_close() if node_id not in self._in_flight else None
            if node is not None and data is not None and not self._network.is_unavailable(node):
                self._network.send(node, FetchRequestBuilder(data, self._config))
                queued += 1
        self._sessions.clear()
        self._buffer.clear()
        return queued

    # --- requests

    def _is_blocked(self, node: Node, now_ms: float) -> bool:
        backlog = self._backlogs.get(node.id)
        return (
            node.id in self._in_flight
            or self._backoff.is_waiting(node.id, now_ms)
            or (backlog is not None and not backlog.is_low())
            or self._network.is_unavailable(node)
        )

    def _send(self, plan: NodePlan) -> None:
        node = plan.node
        session = self._sessions.get(node.id)
        if session is None:
            session = self._sessions[node.id] = FetchSessionHandler(node.id, self._log_context)
        data = session.build(plan.partitions, plan.changed)
        plan.changed = {}
        self._in_flight.add(node.id)
        self._network.send(node, FetchRequestBuilder(data, self._config)).on_done(
            lambda future: self._completed(node, session, future)
        )

    # --- responses

    def _completed(
        self,
        node: Node,
        session: FetchSessionHandler,
        future: RequestFuture[ClientResponse],
    ) -> None:
        self._in_flight.discard(node.id)
        if future.error is not None:
            self._failed(node, session, future.error)
            return
        self._unreceived.pop(node.id, None)
        outcome = future.value
        response = outcome.body(FetchResponse)
        if response.error_code:
            error = error_of_code(response.error_code)
            self._backoff.failed(node.id)
            session.handle_error_code(error)
            if isinstance(error, FetchSessionTopicIdError):
                self._metadata.request_update()
            return
        self._metrics.record_throttle(response.throttle_time_ms)
        responses = self._by_partition(response, session)
        problem = session.handle_response(
            response.session_id, responses.keys(), throttled=response.throttle_time_ms > 0
        )
        if problem is not None:
            self._backoff.failed(node.id)
            self._log.info("fetch response from %s is not used: %s", node, problem)
            return
        self._backoff.succeeded(node.id)
        self._learn_leaders(response, responses)
        tracer = self._tracer
        trace = None if tracer is None else tracer.fetched(outcome)
        size = self._buffer_response(node, session, responses, trace)
        self._metrics.record_fetch(size, outcome.latency_ms)

    def _failed(self, node: Node, session: FetchSessionHandler, error: KafkaError) -> None:
        self._log.info("fetch from %s failed: %s", node, error)
        self._backoff.failed(node.id)
        if isinstance(error.__cause__, InvalidReceiveError):
            self._count_unreceived(node, error.__cause__)
        session.handle_failure()
        for entry in session.partitions.values():
            entry.state.clear_preferred_read_replica()

    def _count_unreceived(self, node: Node, cause: InvalidReceiveError) -> None:
        """Raise the error in `send_fetches` if it repeats; one size may be corrupted in transit."""
        count = self._unreceived[node.id] = self._unreceived.get(node.id, 0) + 1
        if count > 1:
            self._error = InvalidReceiveError(
                f"fetch from {node}: {cause}; a record batch may be larger than "
                "receive_message_max_bytes allows: raise it, or seek past the batch"
            )
            self._error.__cause__ = cause

    def _by_partition(
        self, response: FetchResponse, session: FetchSessionHandler
    ) -> dict[TopicPartition, PartitionData]:
        names = session.topics
        responses: dict[TopicPartition, PartitionData] = {}
        for topic in response.responses:
            name = topic.topic or names.get(topic.topic_id, "")
            for data in topic.partitions:
                # If a partition is listed twice, the first entry is used.
                responses.setdefault(TopicPartition(name, data.partition_index), data)
        return responses

    def _learn_leaders(
        self, response: FetchResponse, responses: dict[TopicPartition, PartitionData]
    ) -> None:
        """Update the metadata with the new leaders in an error response (KIP-951)."""
        leaders = {
            partition: LeaderIdAndEpoch(
                data.current_leader.leader_id, data.current_leader.leader_epoch
            )
            for partition, data in responses.items()
            if data.error_code and data.current_leader.leader_id >= 0
        }
        if leaders:
            nodes = [
                Node(end.node_id, end.host, end.port, end.rack) for end in response.node_endpoints
            ]
            self._metadata.update_partition_leadership(leaders, nodes)

    def _buffer_response(
        self,
        node: Node,
        session: FetchSessionHandler,
        responses: dict[TopicPartition, PartitionData],
        trace: object,
    ) -> int:
        backlog = self._backlogs.get(node.id)
        if backlog is None:
            backlog = self._backlogs[node.id] = NodeBacklog(node.id, self._moved)
        config = self._config if trace is None else self._traced_config
        size = 0
        owed_a_batch = True
        for partition, data in responses.items():
            entry = session.partitions[partition]
            has_data = bool(data.records)
            if not self._subscriptions.holds(entry.state):
                # Not assigned any more. The whole batch may have been in this partition.
                owed_a_batch = owed_a_batch and not has_data
                continue
            fetch = CompletedFetch(
                entry.state,
                data,
                entry.position,
                backlog,
                config,
                deserializes=self._deserializes,
                owed_a_batch=owed_a_batch,
                trace=trace,
            )
            owed_a_batch = owed_a_batch and not has_data
            size += fetch.size
            self._buffer.add(fetch)
        backlog.add_response(size)
        return size
