"""Requests of a producer to coordinators, and the handling of their responses."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import NamedTuple

from kclient.client.api_versions import ApiVersions
from kclient.client.client_request import ClientResponse, RequestBuilder, SimpleBuilder
from kclient.client.find_coordinator import (
    COORDINATOR_ID_BASE,
    CoordinatorType,
    FindCoordinator,
    coordinator_of,
)
from kclient.common.broker_errors import (
    ClusterAuthorizationError,
    ConcurrentTransactionsError,
    CoordinatorNotAvailableError,
    GroupAuthorizationError,
    GroupIdNotFoundError,
    IllegalGenerationError,
    OperationNotAttemptedError,
    StaleMemberEpochError,
    TopicAuthorizationError,
    UnknownMemberIdError,
    UnsupportedVersionError,
    error_for_code,
)
from kclient.common.denials import WRITE, group_denied, topics_denied
from kclient.common.errors import CommitFailedError, KafkaError
from kclient.common.types import Node, TopicPartition
from kclient.producer.sequence_manager import SequenceManager
from kclient.producer.transaction_manager import OffsetsCall, TransactionManager
from kclient.producer.transaction_state import State
from kclient.producer.txn_reactions import Reaction
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.messages.committed_offsets import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from kclient.protocol.messages.find_coordinator import FindCoordinatorResponse
from kclient.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from kclient.protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    EndTxnRequest,
    EndTxnResponse,
)
from kclient.record import NO_PRODUCER, ProducerIdAndEpoch

TRANSACTION_VERSION = "transaction.version"
_VERSION_2 = 2
_NO_TRANSACTION_TIMEOUT = 2**31 - 1
_FIRST_WITH_EPOCH = 3
_LAST_OF_CLIENTS = 3
"""Last version of AddPartitionsToTxn that a producer sends; later ones are for brokers."""
_LAST_OF_VERSION_1 = 4
"""Last version of EndTxn and TxnOffsetCommit in version 1 of the protocol; 5 is version 2."""
_FIRST_WITH_MEMBER = 3
_ADD_BACKOFF_MS = 20.0
_GROUP_HAS_CHANGED = (
    UnknownMemberIdError,
    IllegalGenerationError,
    StaleMemberEpochError,
    GroupIdNotFoundError,
)


class CoordinatorId(NamedTuple):
    """Group or transactional id whose coordinator a request goes to."""

    kind: CoordinatorType
    key: str


class TxnRequestHandler(ABC):
    """A request and the handling of its response (Kafka: TxnRequestHandler).

    Attributes:
        api_key: API of the request.
        coordinator: Whose coordinator the request goes to; None for any broker.
    """

    api_key: ApiKey
    coordinator: CoordinatorId | None = None

    @abstractmethod
    def builder(self) -> RequestBuilder:
        """Return the builder of the request."""

    @abstractmethod
    def handle(self, response: ClientResponse) -> KafkaError | None:
        """Apply a response; return the error that remains, None after a success."""

    @abstractmethod
    def fail(self, error: KafkaError, reaction: Reaction) -> None:
        """Report an error; RETRY and FIND_COORDINATOR mean that the request is sent again."""

    def backoff_ms(self, error: KafkaError) -> float | None:
        """Return the time until the request is sent again, None for ``retry.backoff.ms``."""
        return None


class InitProducerIdHandler(TxnRequestHandler):
    """Requests a producer id, or its next epoch (Kafka: InitProducerIdHandler)."""

    api_key = ApiKey.INIT_PRODUCER_ID

    def __init__(self, manager: SequenceManager) -> None:
        self._manager = manager

    def builder(self) -> RequestBuilder:
        """Return the builder of the request."""
        self._manager.begin_initializing()
        return SimpleBuilder(
            InitProducerIdRequest(
                transactional_id=None, transaction_timeout_ms=_NO_TRANSACTION_TIMEOUT
            )
        )

    def handle(self, response: ClientResponse) -> KafkaError | None:
        """Set the id."""
        body = response.body(InitProducerIdResponse)
        error = error_for_code(body.error_code)
        if error is None:
            self._manager.initialized(ProducerIdAndEpoch(body.producer_id, body.producer_epoch))
        return error

    def fail(self, error: KafkaError, reaction: Reaction) -> None:
        """Request the id again, or fail the producer."""
        passing = reaction in {Reaction.RETRY, Reaction.FIND_COORDINATOR}
        self._manager.initializing_failed(_explained(error), passing=passing)


class TransactionHandler(TxnRequestHandler):
    """A request of a transactional producer."""

    def __init__(self, manager: TransactionManager) -> None:
        self._manager = manager
        self.coordinator = CoordinatorId(CoordinatorType.TRANSACTION, manager.transactional_id)

    def fail(self, error: KafkaError, reaction: Reaction) -> None:
        """Fail the transaction or the producer."""
        if reaction is Reaction.FATAL:
            self._manager.fail(error)
        elif reaction in {Reaction.ABORTABLE, Reaction.NEXT_EPOCH}:
            if reaction is Reaction.NEXT_EPOCH:
                self._manager.request_next_epoch()
            self._manager.fail_transaction(error)


class InitTransactionsHandler(TransactionHandler):
    """Requests the id of a transactional producer, or its next epoch (KIP-98, KIP-360)."""

    api_key = ApiKey.INIT_PRODUCER_ID

    def __init__(
        self, manager: TransactionManager, timeout_ms: int, api_versions: ApiVersions
    ) -> None:
        super().__init__(manager)
        self._timeout_ms = timeout_ms
        self._api_versions = api_versions

    def builder(self) -> RequestBuilder:
        """Return the builder of the request."""
        known = self._manager.producer
        request = InitProducerIdRequest(
            transactional_id=self._manager.transactional_id,
            transaction_timeout_ms=self._timeout_ms,
            producer_id=known.producer_id,
            producer_epoch=known.epoch,
        )
        return SimpleBuilder(request, oldest=_FIRST_WITH_EPOCH if known.is_valid else None)

    def handle(self, response: ClientResponse) -> KafkaError | None:
        """Set the id and epoch, and the version of the transactions that follow."""
        body = response.body(InitProducerIdResponse)
        error = error_for_code(body.error_code)
        if error is None:
            self._manager.uses_version_2 = is_version_2(self._api_versions)
            self._manager.initialized(ProducerIdAndEpoch(body.producer_id, body.producer_epoch))
        return error

    def fail(self, error: KafkaError, reaction: Reaction) -> None:
        """Request the id again, or fail the call or the producer."""
        passing = reaction in {Reaction.RETRY, Reaction.FIND_COORDINATOR}
        self._manager.initializing_failed(error, passing=passing)


class AddPartitionsHandler(TransactionHandler):
    """Adds partitions to the transaction, in version 1 (Kafka: AddPartitionsToTxnHandler)."""

    api_key = ApiKey.ADD_PARTITIONS_TO_TXN

    def builder(self) -> RequestBuilder:
        """Return the builder of a request with all partitions that wait."""
        manager = self._manager
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=manager.transactional_id,
            v3_and_below_producer_id=manager.producer.producer_id,
            v3_and_below_producer_epoch=manager.producer.epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name=topic, partitions=[each.partition for each in found])
                for topic, found in _by_topic(manager.to_add)
            ],
        )
        return SimpleBuilder(request, latest=_LAST_OF_CLIENTS)

    def handle(self, response: ClientResponse) -> KafkaError | None:
        """Let the sender send to the partitions that were added; return the first error."""
        body = response.body(AddPartitionsToTxnResponse)
        added: list[TopicPartition] = []
        failed: dict[TopicPartition, KafkaError] = {}
        for topic in body.results_by_topic_v3_and_below:
            for result in topic.results_by_partition:
                topic_partition = TopicPartition(topic.name, result.partition_index)
                error = error_for_code(result.partition_error_code)
                if error is None:
                    added.append(topic_partition)
                else:
                    failed[topic_partition] = error
        self._manager.added(added)
        return _worst_of_partitions(failed)

    def backoff_ms(self, error: KafkaError) -> float | None:
        """Wait for the markers of the last transaction, which are usually written soon."""
        first = self._manager.is_empty()
        return _ADD_BACKOFF_MS if first and isinstance(error, ConcurrentTransactionsError) else None


class AddOffsetsHandler(TransactionHandler):
    """Adds a group to the transaction, in version 1 (Kafka: AddOffsetsToTxnHandler)."""

    api_key = ApiKey.ADD_OFFSETS_TO_TXN

    def __init__(self, manager: TransactionManager, call: OffsetsCall) -> None:
        super().__init__(manager)
        self._call = call

    def builder(self) -> RequestBuilder:
        """Return the builder of the request."""
        self._manager.sending_offsets()
        return SimpleBuilder(
            AddOffsetsToTxnRequest(
                transactional_id=self._manager.transactional_id,
                producer_id=self._manager.producer.producer_id,
                producer_epoch=self._manager.producer.epoch,
                group_id=self._call.group.group_id,
            )
        )

    def handle(self, response: ClientResponse) -> KafkaError | None:
        """Let the offsets be sent."""
        error = error_for_code(response.body(AddOffsetsToTxnResponse).error_code)
        if error is None:
            self._manager.adds_group = False
        return error

    def fail(self, error: KafkaError, reaction: Reaction) -> None:
        """Fail the call with the error, and the transaction or the producer with it."""
        _fail_offsets(self._manager, self._call, error, reaction)
        super().fail(error, reaction)


class TxnOffsetCommitHandler(TransactionHandler):
    """Sends offsets to the group coordinator (Kafka: TxnOffsetCommitHandler, KIP-447)."""

    api_key = ApiKey.TXN_OFFSET_COMMIT

    def __init__(self, manager: TransactionManager, call: OffsetsCall) -> None:
        super().__init__(manager)
        self._call = call
        self.coordinator = CoordinatorId(CoordinatorType.GROUP, call.group.group_id)

    def builder(self) -> RequestBuilder:
        """Return the builder of a request with the offsets that were not accepted yet."""
        manager, group, offsets = self._manager, self._call.group, self._call.offsets
        manager.sending_offsets()
        request = TxnOffsetCommitRequest(
            transactional_id=manager.transactional_id,
            group_id=group.group_id,
            producer_id=manager.producer.producer_id,
            producer_epoch=manager.producer.epoch,
            generation_id_or_member_epoch=group.generation_id,
            member_id=group.member_id,
            group_instance_id=group.group_instance_id,
            topics=[
                TxnOffsetCommitRequestTopic(
                    name=topic,
                    partitions=[
                        TxnOffsetCommitRequestPartition(
                            partition_index=each.partition,
                            committed_offset=offsets[each].offset,
                            committed_leader_epoch=offsets[each].leader_epoch,
                            committed_metadata=offsets[each].metadata,
                        )
                        for each in found
                    ],
                )
                for topic, found in _by_topic(offsets)
            ],
        )
        if manager.uses_version_2:
            version = _LAST_OF_VERSION_1 + 1  # later ones name topics by id
            return SimpleBuilder(request, oldest=version, latest=version)
        is_member = bool(group.member_id) or group.generation_id >= 0
        oldest = _FIRST_WITH_MEMBER if is_member or group.group_instance_id else None
        return SimpleBuilder(request, oldest=oldest, latest=_LAST_OF_VERSION_1)

    def handle(self, response: ClientResponse) -> KafkaError | None:
        """Complete the call when all offsets were accepted; return the worst error."""
        body = response.body(TxnOffsetCommitResponse)
        sent: list[TopicPartition] = []
        failed: dict[TopicPartition, KafkaError] = {}
        for topic in body.topics:
            for result in topic.partitions:
                topic_partition = TopicPartition(topic.name, result.partition_index)
                error = error_for_code(result.error_code)
                if error is None:
                    sent.append(topic_partition)
                else:
                    failed[topic_partition] = error
        self._manager.offsets_sent(self._call, sent)
        return _worst(failed.values())

    def fail(self, error: KafkaError, reaction: Reaction) -> None:
        """Fail the call with the error, and the transaction or the producer with it."""
        _fail_offsets(self._manager, self._call, error, reaction)
        super().fail(error, reaction)


class EndTxnHandler(TransactionHandler):
    """Commits or aborts the transaction (Kafka: EndTxnHandler)."""

    api_key = ApiKey.END_TXN

    def __init__(self, manager: TransactionManager, api_versions: ApiVersions) -> None:
        super().__init__(manager)
        self._commits = manager.is_committing
        self._api_versions = api_versions

    def builder(self) -> RequestBuilder:
        """Return the builder of the request."""
        manager = self._manager
        manager.note_version(is_version_2=is_version_2(self._api_versions))
        request = EndTxnRequest(
            transactional_id=manager.transactional_id,
            producer_id=manager.producer.producer_id,
            producer_epoch=manager.producer.epoch,
            committed=self._commits,
        )
        if manager.uses_version_2:
            version = _LAST_OF_VERSION_1 + 1
            return SimpleBuilder(request, oldest=version, latest=version)
        return SimpleBuilder(request, latest=_LAST_OF_VERSION_1)

    def handle(self, response: ClientResponse) -> KafkaError | None:
        """Complete the commit or abort."""
        body = response.body(EndTxnResponse)
        error = error_for_code(body.error_code)
        if error is None:
            self._manager.ended(ProducerIdAndEpoch(body.producer_id, body.producer_epoch))
        return error

    def fail(self, error: KafkaError, reaction: Reaction) -> None:
        """Fail the transaction or the producer; an abort that fails leaves nothing to try."""
        if reaction is Reaction.ABORTABLE and not self._commits:
            reaction = Reaction.FATAL
        super().fail(error, reaction)


class FindCoordinatorHandler(TxnRequestHandler):
    """Finds the coordinator for another request (Kafka: FindCoordinatorHandler)."""

    api_key = ApiKey.FIND_COORDINATOR

    def __init__(self, wanted: TxnRequestHandler, found: dict[CoordinatorId, Node]) -> None:
        """Create a handler.

        Args:
            wanted: The request that needs the coordinator; an error fails it.
            found: Gets the coordinator.
        """
        if wanted.coordinator is None:
            raise ValueError("the request needs no coordinator")
        self._wanted = wanted
        self._key = wanted.coordinator
        self._found = found

    def builder(self) -> RequestBuilder:
        """Return the builder of the request."""
        return FindCoordinator([self._key.key], self._key.kind)

    def handle(self, response: ClientResponse) -> KafkaError | None:
        """Keep the coordinator."""
        try:
            node = coordinator_of(response.body(FindCoordinatorResponse), self._key.key)
            if not node.host:
                raise CoordinatorNotAvailableError("the response contains no broker")
        except KafkaError as error:
            return error.with_traceback(None)
        self._found[self._key] = node._replace(id=COORDINATOR_ID_BASE - node.id)
        return None

    def fail(self, error: KafkaError, reaction: Reaction) -> None:
        """Fail the request that needs the coordinator."""
        if isinstance(error, GroupAuthorizationError):
            error = group_denied(self._key.key)
        self._wanted.fail(error, reaction)


def is_version_2(api_versions: ApiVersions) -> bool:
    """Return whether the cluster's transactions follow KIP-890."""
    return api_versions.finalized_level(TRANSACTION_VERSION) >= _VERSION_2


def next_handler(
    manager: SequenceManager, timeout_ms: int, api_versions: ApiVersions, *, is_incomplete: bool
) -> TxnRequestHandler | None:
    """Return the request that the state of a producer asks for, if any.

    Args:
        manager: The producer's state.
        timeout_ms: ``transaction.timeout.ms``.
        api_versions: Versions and features of the brokers.
        is_incomplete: Whether a batch has no outcome yet.
    """
    if isinstance(manager, TransactionManager):
        return _next_of_transaction(manager, timeout_ms, api_versions, is_incomplete=is_incomplete)
    return InitProducerIdHandler(manager) if manager.state is State.UNINITIALIZED else None


def _next_of_transaction(
    manager: TransactionManager, timeout_ms: int, api_versions: ApiVersions, *, is_incomplete: bool
) -> TxnRequestHandler | None:
    state = manager.state
    if state is State.INITIALIZING:
        return InitTransactionsHandler(manager, timeout_ms, api_versions)
    if state in {State.IN_TRANSACTION, State.COMMITTING}:
        if manager.to_add:
            return AddPartitionsHandler(manager)
        call = manager.pending_offsets()
        if call is not None:
            adds_group = manager.adds_group and not manager.uses_version_2
            handler = AddOffsetsHandler if adds_group else TxnOffsetCommitHandler
            return handler(manager, call)
    if manager.is_ending and not is_incomplete and manager.may_end():
        if not manager.is_empty():
            return EndTxnHandler(manager, api_versions)
        manager.ended(NO_PRODUCER)
        return _next_of_transaction(manager, timeout_ms, api_versions, is_incomplete=is_incomplete)
    return None


def _by_topic(
    partitions: Iterable[TopicPartition],
) -> Iterator[tuple[str, Iterator[TopicPartition]]]:
    return groupby(sorted(partitions), lambda each: each.topic)


def _worst(errors: Iterable[KafkaError]) -> KafkaError | None:
    """Return an error that cannot be retried, or else any, or None."""
    found = sorted(errors, key=lambda error: error.retriable)
    return found[0] if found else None


def _worst_of_partitions(failed: dict[TopicPartition, KafkaError]) -> KafkaError | None:
    """Return the error of partitions that were not added; a denial names all its topics."""
    denied = {
        each.topic for each, error in failed.items() if isinstance(error, TopicAuthorizationError)
    }
    if denied:
        return topics_denied(denied, WRITE)
    others = [
        error for error in failed.values() if not isinstance(error, OperationNotAttemptedError)
    ]
    return _worst(others or failed.values())


def _fail_offsets(
    manager: TransactionManager, call: OffsetsCall, error: KafkaError, reaction: Reaction
) -> None:
    if reaction not in {Reaction.ABORTABLE, Reaction.NEXT_EPOCH}:
        return
    group_id = call.group.group_id
    failed = error
    if isinstance(error, _GROUP_HAS_CHANGED):
        failed = CommitFailedError(
            f"group {group_id!r} has rebalanced: its partitions belong, or may belong, to another "
            f"member now; abort the transaction and poll again: {error}"
        )
        failed.__cause__ = error
    elif isinstance(error, GroupAuthorizationError):
        failed = group_denied(group_id)
    manager.offsets_failed(call, failed)


def _explained(error: KafkaError) -> KafkaError:
    """Return the error with what to do where a service does not accept idempotent producers."""
    if isinstance(error, UnsupportedVersionError):
        return UnsupportedVersionError(
            f"{error}, which an idempotent producer needs; set enable_idempotence=False"
        )
    if isinstance(error, ClusterAuthorizationError):
        return ClusterAuthorizationError(
            f"{error}: not allowed to write idempotently; allow IdempotentWrite on the cluster (in "
            "AWS MSK with IAM: kafka-cluster:WriteDataIdempotently), or set "
            "enable_idempotence=False"
        )
    return error
