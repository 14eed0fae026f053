"""Metadata of the cluster: its present state, due updates, and calls that wait for them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from kclient.client.client_config import ClientConfig
from kclient.client.client_request import RequestBuilder, SimpleBuilder
from kclient.client.cluster import Cluster
from kclient.client.exponential_backoff import ExponentialBackoff
from kclient.client.metadata_refresh_timing import MetadataRefreshTiming
from kclient.client.metadata_response_reader import LastSeenEpochs, MetadataResponseReader
from kclient.client.metadata_snapshot import UNKNOWN_EPOCH, MetadataSnapshot, TopicMetadata
from kclient.common.broker_errors import InvalidTopicError, TopicAuthorizationError
from kclient.common.denials import DESCRIBE, topics_denied
from kclient.common.errors import ClosedError, KafkaError
from kclient.common.log_context import NO_LOG_CONTEXT, LogContext
from kclient.common.runtime import Address, Runtime
from kclient.common.types import Node, TopicPartition
from kclient.common.waiting import ConditionWait, Steps
from kclient.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)


class LeaderAndEpoch(NamedTuple):
    """Leader of a partition and its epoch (Kafka: Metadata.LeaderAndEpoch).

    Attributes:
        leader: Broker, or None if there is none or it is unknown.
        epoch: Leader epoch, or -1 if unknown.
    """

    leader: Node | None
    epoch: int


class LeaderIdAndEpoch(NamedTuple):
    """New leader from a produce or fetch response (KIP-951)."""

    leader_id: int
    epoch: int


class MetadataRequestAndVersion(NamedTuple):
    """METADATA request and the updates it covers (Kafka: Metadata.MetadataRequestAndVersion).

    Attributes:
        request: Request.
        request_version: Number of the last requested update that it covers.
        is_partial: Whether it requests new topics only.
    """

    request: MetadataRequest
    request_version: int
    is_partial: bool


# Kafka's times between updates; metadata connects to no server itself.
DEFAULT_CONFIG = ClientConfig(bootstrap_servers=())


class Metadata:
    """Metadata of an admin client, and base of the other clients' (Kafka: Metadata).

    `ProducerMetadata` and `ConsumerMetadata` add topics. The network thread applies responses;
    application threads read, request updates and wait for them. `cluster` and `time_to_next_update`
    take no lock.
    """

    def __init__(
        self,
        runtime: Runtime,
        config: ClientConfig = DEFAULT_CONFIG,
        log_context: LogContext = NO_LOG_CONTEXT,
    ) -> None:
        """Create metadata without brokers.

        Args:
            runtime: Clock, random numbers, conditions.
            config: Times between updates, as ``metadata.max.age.ms``.
            log_context: Prefix of the client's log lines.
        """
        self._log_context = log_context
        self._clock = runtime.clock
        # guards: everything below, here and in derived classes; notified on each response, on a
        # fatal error and on close
        self._condition = runtime.tasks.condition()
        backoff = ExponentialBackoff(
            config.retry_backoff_ms, config.retry_backoff_max_ms, runtime.random.random
        )
        self._timing = MetadataRefreshTiming(backoff, config.metadata_max_age_ms)
        self._bootstrap_addresses: Sequence[Address] = ()
        self._snapshot = MetadataSnapshot.bootstrap(())
        self._cluster = self._snapshot.cluster()
        self._epochs = LastSeenEpochs()
        self._topic_errors: dict[str, KafkaError] = {}  # not raised yet
        self._fatal_error: KafkaError | None = None
        self._closed = False

    # --- reading

    def cluster(self) -> Cluster:
        """Return the present cluster."""
        return self._cluster

    def update_version(self) -> int:
        """Return the number of the last update, to wait for a later one."""
        with self._condition:
            return self._timing.update_version

    def topic_error(self, topic: str) -> KafkaError | None:
        """Return the error that the last response has for a topic; None if it has none."""
        known = self._snapshot.topic(topic)
        return known.error if known is not None else None

    def maybe_raise_any_error(self) -> None:
        """Raise an error that a retry does not resolve: of authentication, or of a topic.

        The error of a topic is raised once for each response that has it.

        Raises:
            TopicAuthorizationError: The client is not authorized for a requested topic.
            InvalidTopicError: The name of a topic is invalid.
            KafkaError: The error passed to `fatal_error`.
        """
        with self._condition:
            errors, self._topic_errors = self._topic_errors, {}
            self._raise_fatal_error()
            for kind in (TopicAuthorizationError, InvalidTopicError):
                topics = sorted(name for name, error in errors.items() if isinstance(error, kind))
                if topics:
                    raise _error_of_topics(kind, topics)

    def maybe_raise_error_for_topic(self, topic: str) -> None:
        """Raise an error that a retry does not resolve, of one topic; see `maybe_raise_any_error`.

        Raises:
            TopicAuthorizationError: The client is not authorized for the topic.
            InvalidTopicError: The name of the topic is invalid.
            KafkaError: The error passed to `fatal_error`.
        """
        with self._condition:
            self._raise_fatal_error()
            error = self._topic_errors.pop(topic, None)
            if error is not None:
                raise _error_of_topics(type(error), [topic])

    # --- requesting and awaiting updates

    def request_update(self, *, cluster_changed: bool = False) -> int:
        """Request a full update; return the number to pass to `await_update`.

        Args:
            cluster_changed: Whether the caller learned that the cluster changed; resets the
                back-off that grows while responses are equal.
        """
        with self._condition:
            return self._timing.request_full(cluster_changed=cluster_changed)

    def await_update(self, last_version: int, until_ms: float) -> Steps[bool]:
        """Wait for an update later than `last_version`.

        Args:
            last_version: From `update_version` or `request_update`.
            until_ms: Deadline in the clock's milliseconds.

        Returns:
            Whether there was one.

        Raises:
            ClosedError: The client was closed.
            KafkaError: The error passed to `fatal_error`.
        """

        def has_ended() -> bool:
            later = self._timing.update_version > last_version
            return later or self._closed or self._fatal_error is not None

        yield ConditionWait(self._condition, has_ended, until_ms)
        with self._condition:
            self._raise_fatal_error()
            if self._closed:
                raise ClosedError("the client was closed while it waited for metadata")
            return self._timing.update_version > last_version

    def close(self) -> None:
        """Wake all waiting threads; idempotent."""
        with self._condition:
            self._closed = True
            self._condition.notify_all()

    # --- for the network client

    def bootstrap(self, addresses: Sequence[Address]) -> None:
        """Start from bootstrap servers, given as host names and ports."""
        with self._condition:
            self._bootstrap_addresses = tuple(addresses)
            self._timing.bootstrapped()
            self._replace(MetadataSnapshot.bootstrap(addresses))
            self._condition.notify_all()

    def rebootstrap(self) -> None:
        """Restart from the bootstrap servers, since no known broker is usable (KIP-899).

        Unlike Kafka's client, this keeps the topics, without leaders, until the next response: a
        producer accepts records while the whole cluster restarts.
        """
        with self._condition:
            if not self._snapshot.is_bootstrap:
                log = self._log_context.logger(__name__)
                log.info("rebootstrapping: connecting to the bootstrap servers")
                self._timing.bootstrapped()
                known = self._snapshot
                start = MetadataSnapshot.bootstrap(self._bootstrap_addresses)
                self._replace(start._replace(topics=known.topics, cluster_id=known.cluster_id))
                self._condition.notify_all()

    def time_to_next_update(self, now_ms: float) -> float:
        """Return the wait until the next request."""
        return max(0.0, self._timing.next_update_ms - now_ms)

    def next_request(self, now_ms: float) -> MetadataRequestAndVersion:
        """Return the next request: for new topics if that suffices, else for all topics."""
        with self._condition:
            timing = self._timing
            partial = not timing.full_update_needed and timing.is_fresh(now_ms)
            request = self._request_for_new_topics() if partial else None
            if request is None:
                return MetadataRequestAndVersion(
                    self._request(), timing.request_version, is_partial=False
                )
            return MetadataRequestAndVersion(request, timing.request_version, is_partial=True)

    def update(
        self, request: MetadataRequestAndVersion, response: MetadataResponse, now_ms: float
    ) -> None:
        """Apply a response."""
        with self._condition:

            def retain(topic: str, is_internal: bool) -> bool:  # noqa: FBT001 (a TopicFilter)
                return self._retain(topic, is_internal, now_ms)

            reader = MetadataResponseReader(self._snapshot, self._epochs, retain, self._log_context)
            snapshot = reader.read(response)
            if request.is_partial:
                snapshot = self._snapshot.merged(snapshot, retain)
            same = snapshot.describes_same_cluster(self._snapshot)
            self._timing.updated(
                request.request_version, now_ms, partial=request.is_partial, same=same
            )
            if reader.refresh_needed:
                self._timing.request_full()
            self._fatal_error = None
            self._topics_described(topic.name for topic in response.topics if topic.name)
            if same:
                self._keep(snapshot.controller_id)
            else:
                self._replace(snapshot)
            self._epochs.retain(
                lambda topic: topic in snapshot.topics or retain(topic, is_internal=False)
            )
            self._condition.notify_all()

    def failed_update(self, now_ms: float) -> None:
        """Record that a request failed; the next one backs off longer."""
        with self._condition:
            self._timing.failed(now_ms)

    def fatal_error(self, error: KafkaError) -> None:
        """Set an error, such as a failed authentication, that waiting and next calls raise."""
        with self._condition:
            self._fatal_error = error
            self._condition.notify_all()

    # --- updates from other responses

    def update_last_seen_epoch_if_newer(self, topic_partition: TopicPartition, epoch: int) -> bool:
        """Record the leader epoch of another response; a newer one requests an update (KIP-320).

        Returns:
            Whether it is newer than the known epoch; False if none is known.
        """
        with self._condition:
            known = self._epochs.get(topic_partition)
            if known == UNKNOWN_EPOCH or epoch <= known:
                return False
            self._epochs.put(topic_partition, epoch)
            self._timing.request_full(cluster_changed=True)
            return True

    def update_partition_leadership(
        self, leaders: Mapping[TopicPartition, LeaderIdAndEpoch], nodes: Iterable[Node]
    ) -> set[TopicPartition]:
        """Apply the leaders of a produce or fetch response (KIP-951).

        Args:
            leaders: New leaders.
            nodes: Addresses of these brokers.

        Returns:
            The partitions whose leader is newer than the known one.
        """
        with self._condition:
            known_nodes = {**self._snapshot.nodes, **{node.id: node for node in nodes}}
            updated = {
                key
                for key, leader in leaders.items()
                if leader.leader_id in known_nodes
                and _is_newer(self._snapshot.topic(key.topic), key, leader)
            }
            if updated:
                for key in updated:
                    self._epochs.put(key, leaders[key].epoch)
                topics = _with_leaders(
                    self._snapshot.topics, {key: leaders[key] for key in updated}
                )
                self._replace(self._snapshot._replace(nodes=known_nodes, topics=topics))
                self._condition.notify_all()
            return updated

    # --- overridden by derived classes

    def request_builder(self, request: MetadataRequest) -> RequestBuilder:
        """Return the builder of a request; its response is a MetadataResponse."""
        return SimpleBuilder(request)

    def _request(self) -> MetadataRequest:
        """Return the request for all topics in use: here for the brokers only."""
        return MetadataRequest(topics=[], allow_auto_topic_creation=False)

    def _request_for_new_topics(self) -> MetadataRequest | None:
        """Return the request for new topics, or None if all topics must be requested."""
        return None

    def _retain(self, topic: str, is_internal: bool, now_ms: float) -> bool:  # noqa: FBT001 (a TopicFilter with a time)
        """Return whether to keep a topic."""
        return True

    def _topics_described(self, topics: Iterable[str]) -> None:
        """Record the topics of a response."""

    # --- internal

    def _request_new_topics(self, added: Iterable[str]) -> int:
        """Request topics; at once if one of them is not in the snapshot."""
        at_once = any(topic not in self._snapshot.topics for topic in added)
        return self._timing.request_partial(at_once=at_once)

    def _raise_fatal_error(self) -> None:
        error, self._fatal_error = self._fatal_error, None
        if error is not None:
            raise error

    def _replace(self, snapshot: MetadataSnapshot) -> None:
        self._snapshot = snapshot
        self._cluster = snapshot.cluster()
        self._record_topic_errors(snapshot.topics)

    def _keep(self, controller_id: int) -> None:
        """Keep the snapshot, which equals that of a response except for the controller."""
        if controller_id != self._snapshot.controller_id:
            self._snapshot = self._snapshot._replace(controller_id=controller_id)
            self._cluster = self._cluster.with_controller(self._snapshot.controller)
        self._record_topic_errors(self._snapshot.topics)

    def _record_topic_errors(self, topics: Mapping[str, TopicMetadata]) -> None:
        for name in [name for name in self._topic_errors if name not in topics]:
            del self._topic_errors[name]
        for name, topic in topics.items():
            error = topic.error
            if isinstance(error, TopicAuthorizationError | InvalidTopicError):
                self._topic_errors[name] = error


def request_for(names: Iterable[str] | None, *, allow_creation: bool) -> MetadataRequest:
    """Return the request for topics by name; None requests all."""
    topics = None if names is None else [MetadataRequestTopic(name=name) for name in names]
    return MetadataRequest(topics=topics, allow_auto_topic_creation=allow_creation)


def _is_newer(topic: TopicMetadata | None, key: TopicPartition, leader: LeaderIdAndEpoch) -> bool:
    known = topic.partitions.get(key.partition) if topic is not None else None
    return known is not None and leader.epoch > known.leader_epoch


def _with_leaders(
    topics: Mapping[str, TopicMetadata], leaders: Mapping[TopicPartition, LeaderIdAndEpoch]
) -> dict[str, TopicMetadata]:
    """Return the topics with other leaders; each topic is copied once."""
    changed = {name: dict(topics[name].partitions) for name in {key.topic for key in leaders}}
    for key, leader in leaders.items():
        partitions = changed[key.topic]
        partitions[key.partition] = partitions[key.partition]._replace(
            leader_id=leader.leader_id, leader_epoch=leader.epoch
        )
    return {
        **topics,
        **{name: topics[name]._replace(partitions=found) for name, found in changed.items()},
    }


def _error_of_topics(kind: type[KafkaError], topics: list[str]) -> KafkaError:
    """Return the error of topics with their names."""
    if kind is TopicAuthorizationError:
        return topics_denied(topics, DESCRIBE)
    return kind(f"{kind.error_name}: {', '.join(topics)}")
