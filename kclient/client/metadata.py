"""What a client knows of the cluster, when it must ask again, and who waits for the answer."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from kclient.client.cluster import Cluster
from kclient.client.exponential_backoff import ExponentialBackoff
from kclient.client.last_seen_epochs import LastSeenEpochs
from kclient.client.metadata_refresh_timing import MetadataRefreshTiming
from kclient.client.metadata_response_reader import MetadataResponseReader
from kclient.client.metadata_snapshot import UNKNOWN_EPOCH, MetadataSnapshot, TopicMetadata
from kclient.common.broker_errors import InvalidTopicError, TopicAuthorizationError
from kclient.common.errors import ClosedError, KafkaError
from kclient.common.log_context import NO_LOG_CONTEXT, LogContext
from kclient.common.runtime import Address, Runtime
from kclient.common.types import Node, TopicPartition
from kclient.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)


class LeaderAndEpoch(NamedTuple):
    """Who leads a partition, and in which term (Kafka: Metadata.LeaderAndEpoch).

    Attributes:
        leader: Broker, or None if there is none or it is unknown.
        epoch: The term, or -1 if unknown.
    """

    leader: Node | None
    epoch: int


class LeaderIdAndEpoch(NamedTuple):
    """A new leader as a produce or fetch response names it (KIP-951)."""

    leader_id: int
    epoch: int


class MetadataAsk(NamedTuple):
    """A request for metadata, with what must be known when its answer comes.

    Attributes:
        request: What to send.
        request_version: Number of the last wish that the request covers.
        is_partial: Whether it asks for new topics only.
    """

    request: MetadataRequest
    request_version: int
    is_partial: bool


class Metadata:
    """The client's view of the cluster, as an admin client needs it (Kafka: Metadata).

    `ProducerMetadata` and `ConsumerMetadata` add the topics they want to know about. The network
    thread brings answers; application threads read, wish for updates and wait. `cluster` may be
    read without waiting for anybody.
    """

    def __init__(
        self,
        runtime: Runtime,
        *,
        refresh_backoff_ms: float = 100,
        refresh_backoff_max_ms: float = 1000,
        max_age_ms: float = 300_000,
        log_context: LogContext = NO_LOG_CONTEXT,
    ) -> None:
        """Start without any knowledge.

        Args:
            runtime: Door to clock, randomness and waiting.
            refresh_backoff_ms: Wait between two requests, ``retry.backoff.ms``.
            refresh_backoff_max_ms: Longest such wait, ``retry.backoff.max.ms``.
            max_age_ms: When to ask without a reason, ``metadata.max.age.ms``.
            log_context: Names the client in its log lines.
        """
        self._log_context = log_context
        self._clock = runtime.clock
        # guards: everything below, here and in derived classes; notified on each answer, on an
        # error and on close
        self._condition = runtime.tasks.condition()
        backoff = ExponentialBackoff(
            refresh_backoff_ms, refresh_backoff_max_ms, runtime.random.random
        )
        self._timing = MetadataRefreshTiming(backoff, max_age_ms)
        self._bootstrap_addresses: Sequence[Address] = ()
        self._snapshot = MetadataSnapshot.bootstrap(())
        self._cluster = self._snapshot.cluster()
        self._epochs = LastSeenEpochs()
        self._topic_errors: dict[str, KafkaError] = {}  # not raised to anybody yet
        self._fatal_error: KafkaError | None = None
        self._closed = False

    # --- reading

    def cluster(self) -> Cluster:
        """Return the present picture."""
        return self._cluster

    def update_version(self) -> int:
        """Return the number of the last answer, to wait for a later one."""
        with self._condition:
            return self._timing.update_version

    def topic_error(self, topic: str) -> KafkaError | None:
        """Return why the last answer did not describe a topic, if it spoke of it."""
        known = self._snapshot.topics.get(topic)
        return known.error if known is not None else None

    def maybe_raise_any_error(self) -> None:
        """Raise what no retry heals: a failed authentication, a topic forbidden or misnamed.

        An error of a topic is raised once; the next answer may bring it again.

        Raises:
            TopicAuthorizationError: The client may not see a topic it asked for.
            InvalidTopicError: A topic's name is not legal.
            KafkaError: What `fatal_error` reported.
        """
        with self._condition:
            errors, self._topic_errors = self._topic_errors, {}
            self._raise_fatal_error()
            for kind in (TopicAuthorizationError, InvalidTopicError):
                topics = sorted(name for name, error in errors.items() if isinstance(error, kind))
                if topics:
                    raise kind(f"{kind.error_name}: {', '.join(topics)}")

    def maybe_raise_error_for_topic(self, topic: str) -> None:
        """Raise what no retry heals, as far as it touches one topic; see `maybe_raise_any_error`.

        Raises:
            TopicAuthorizationError: The client may not see the topic.
            InvalidTopicError: The topic's name is not legal.
            KafkaError: What `fatal_error` reported.
        """
        with self._condition:
            self._raise_fatal_error()
            error = self._topic_errors.pop(topic, None)
            if error is not None:
                raise type(error)(f"{error.error_name}: {topic}")

    # --- wishing and waiting

    def request_update(self, *, answers_differ: bool = False) -> int:
        """Request a full update; return the number to pass to `await_update`.

        Args:
            answers_differ: Whether the caller learned that the cluster changed, so that the
                wait that grew while responses stayed the same starts over.
        """
        with self._condition:
            return self._timing.request_full(responses_differ=answers_differ)

    def await_update(self, last_version: int, timeout: float) -> bool:
        """Wait until an answer later than `last_version` has come.

        Args:
            last_version: From `update_version` or `request_update`.
            timeout: Longest wait, seconds.

        Returns:
            Whether it has come.

        Raises:
            ClosedError: The client was closed meanwhile.
            KafkaError: What `fatal_error` reported.
        """
        with self._condition:

            def settled() -> bool:
                later = self._timing.update_version > last_version
                return later or self._closed or self._fatal_error is not None

            self._condition.wait_for(settled, max(0.0, timeout))
            self._raise_fatal_error()
            if self._closed:
                raise ClosedError("the client was closed while it waited for metadata")
            return self._timing.update_version > last_version

    def close(self) -> None:
        """Wake everybody who waits; idempotent."""
        with self._condition:
            self._closed = True
            self._condition.notify_all()

    # --- for the network client

    def bootstrap(self, addresses: Sequence[Address]) -> None:
        """Start from these servers, names and ports, with no other knowledge."""
        with self._condition:
            self._bootstrap_addresses = tuple(addresses)
            self._timing.started_over()
            self._replace(MetadataSnapshot.bootstrap(addresses))
            self._condition.notify_all()

    def rebootstrap(self) -> None:
        """Start over from the bootstrap servers: no broker known is of use (KIP-899).

        Unlike Kafka's, this keeps the topics, without leaders, until a broker describes them anew:
        a producer goes on taking records while the whole cluster restarts.
        """
        with self._condition:
            if not self._snapshot.is_bootstrap:
                log = self._log_context.logger(__name__)
                log.info("starting over from the bootstrap servers")
                self._timing.started_over()
                known = self._snapshot
                start = MetadataSnapshot.bootstrap(self._bootstrap_addresses)
                self._replace(replace(start, topics=known.topics, cluster_id=known.cluster_id))
                self._condition.notify_all()

    def time_to_next_update(self, now_ms: float) -> float:
        """Return in how many milliseconds to ask."""
        with self._condition:
            return self._timing.time_to_next_ms(now_ms)

    def next_request(self, now_ms: float) -> MetadataAsk:
        """Return what to ask now: new topics where that is enough, else all wanted ones."""
        with self._condition:
            timing = self._timing
            partial = not timing.full_update_needed and timing.is_fresh(now_ms)
            request = self._request_for_new_topics() if partial else None
            if request is None:
                return MetadataAsk(self._request(), timing.request_version, is_partial=False)
            return MetadataAsk(request, timing.request_version, is_partial=True)

    def update(self, ask: MetadataAsk, response: MetadataResponse, now_ms: float) -> None:
        """Take in an answer."""
        with self._condition:

            def retain(topic: str, is_internal: bool) -> bool:  # noqa: FBT001 (a TopicFilter)
                return self._retain(topic, is_internal, now_ms)

            reader = MetadataResponseReader(self._snapshot, self._epochs, retain, self._log_context)
            snapshot = reader.read(response)
            if ask.is_partial:
                snapshot = self._snapshot.merged(snapshot, retain)
            same = snapshot.says_the_same(self._snapshot)
            self._timing.updated(ask.request_version, now_ms, partial=ask.is_partial, same=same)
            if reader.refresh_needed:
                self._timing.request_full()
            self._fatal_error = None
            self._note_answered(topic.name for topic in response.topics if topic.name)
            self._replace(snapshot)
            self._epochs.retain(
                lambda topic: topic in snapshot.topics or retain(topic, is_internal=False)
            )
            self._condition.notify_all()

    def failed_update(self, now_ms: float) -> None:
        """Note that no answer came; the next request waits longer."""
        with self._condition:
            self._timing.failed(now_ms)

    def fatal_error(self, error: KafkaError) -> None:
        """Raise an error, such as a failed authentication, to everybody who waits or reads."""
        with self._condition:
            self._fatal_error = error
            self._condition.notify_all()

    # --- news from other responses

    def update_last_seen_epoch_if_newer(self, topic_partition: TopicPartition, epoch: int) -> bool:
        """Note an epoch seen in another response; a newer one calls for an update (KIP-320).

        Returns:
            Whether it is newer than the epoch known; False where none is known.
        """
        with self._condition:
            known = self._epochs.get(topic_partition)
            if known == UNKNOWN_EPOCH or epoch <= known:
                return False
            self._epochs.put(topic_partition, epoch)
            self._timing.request_full(responses_differ=True)
            return True

    def update_partition_leadership(
        self, leaders: Mapping[TopicPartition, LeaderIdAndEpoch], nodes: Iterable[Node]
    ) -> set[TopicPartition]:
        """Take in leaders named by a produce or fetch response (KIP-951).

        Args:
            leaders: New leaders.
            nodes: Where these brokers are.

        Returns:
            The partitions whose leader was indeed newer than the one known.
        """
        with self._condition:
            known_nodes = {**self._snapshot.nodes, **{node.id: node for node in nodes}}
            topics = dict(self._snapshot.topics)
            updated = set()
            for key, leader in leaders.items():
                topic = topics.get(key.topic)
                if leader.leader_id in known_nodes and _is_newer(topic, key, leader):
                    topics[key.topic] = _with_leader(topics[key.topic], key.partition, leader)
                    self._epochs.put(key, leader.epoch)
                    updated.add(key)
            if updated:
                self._replace(replace(self._snapshot, nodes=known_nodes, topics=topics))
                self._condition.notify_all()
            return updated

    # --- what derived classes want to know

    def _request(self) -> MetadataRequest:
        """Return the request for everything wanted: here, for the brokers alone."""
        return MetadataRequest(topics=[], allow_auto_topic_creation=False)

    def _request_for_new_topics(self) -> MetadataRequest | None:
        """Return the request for new topics, or None if all must be asked for."""
        return None

    def _retain(self, topic: str, is_internal: bool, now_ms: float) -> bool:  # noqa: FBT001 (a TopicFilter with a time)
        """Return whether to remember a topic."""
        return True

    def _note_answered(self, topics: Iterable[str]) -> None:
        """Take note of the topics that an answer spoke of."""

    # --- inside

    def _request_new_topics(self, added: Iterable[str]) -> int:
        """Request topics; at once if the last responses do not mention one of them."""
        at_once = any(topic not in self._snapshot.topics for topic in added)
        return self._timing.request_partial(at_once=at_once)

    def _raise_fatal_error(self) -> None:
        error, self._fatal_error = self._fatal_error, None
        if error is not None:
            raise error

    def _replace(self, snapshot: MetadataSnapshot) -> None:
        self._snapshot = snapshot
        self._cluster = snapshot.cluster()
        for name, topic in snapshot.topics.items():
            error = topic.error
            if isinstance(error, TopicAuthorizationError | InvalidTopicError):
                self._topic_errors[name] = error


def request_for(names: Iterable[str] | None, *, allow_creation: bool) -> MetadataRequest:
    """Return the request for some topics by name; None asks for all."""
    topics = None if names is None else [MetadataRequestTopic(name=name) for name in names]
    return MetadataRequest(topics=topics, allow_auto_topic_creation=allow_creation)


def _is_newer(topic: TopicMetadata | None, key: TopicPartition, leader: LeaderIdAndEpoch) -> bool:
    known = topic.partitions.get(key.partition) if topic is not None else None
    return known is not None and leader.epoch > known.leader_epoch


def _with_leader(topic: TopicMetadata, partition: int, leader: LeaderIdAndEpoch) -> TopicMetadata:
    changed = topic.partitions[partition]._replace(
        leader_id=leader.leader_id, leader_epoch=leader.epoch
    )
    return replace(topic, partitions={**topic.partitions, partition: changed})
