"""TxnOffsetCommit, versions 0-5: stores offsets of a group with a transaction (KIP-98, KIP-447).

They take effect when the transaction is committed. Until then OffsetFetch returns
UNSTABLE_OFFSET_COMMIT to consumers that require stable offsets.
"""

from collections.abc import Callable

from kclient.broker.coordinator.group.group_records import CommittedOffset
from kclient.broker.coordinator.runtime.partition_log import (
    TransactionOwner,
    coordinator_error,
)
from kclient.broker.log.transaction_verification import OPEN_TRANSACTION, VerificationGuard
from kclient.broker.network.request_channel import Request
from kclient.broker.server.served_api import BrokerServices, ServedApi
from kclient.broker.server.transaction_verification import (
    Guards,
    Refusals,
    TransactionToVerify,
)
from kclient.common.acls import AclOperation, ResourceType
from kclient.common.broker_errors import (
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    GroupAuthorizationError,
    InvalidRequestError,
    TopicAuthorizationError,
    TransactionalIdAuthorizationError,
    UnknownTopicOrPartitionError,
    code_of,
)
from kclient.common.types import TopicPartition
from kclient.protocol.messages.committed_offsets import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from kclient.record.batch_header import NO_SEQUENCE

_LOAD_IN_PROGRESS = 2
"""First version whose clients retry COORDINATOR_LOAD_IN_PROGRESS."""

_ABORTABLE_ERRORS = 4
_ADDS_PARTITIONS = 5

_OnCommitted = Callable[[dict[TopicPartition, int]], None]


def handle(services: BrokerServices, request: Request, body: TxnOffsetCommitRequest) -> None:
    """Commit the offsets of existing partitions; return an error code for each."""
    _authorize(services, request, body)
    if body.producer_id < 0 or body.producer_epoch < 0:
        raise InvalidRequestError(
            f"producer: got id {body.producer_id} and epoch {body.producer_epoch}, expected >= 0"
        )
    codes: dict[TopicPartition, int] = {}
    wanted: dict[TopicPartition, CommittedOffset] = {}
    image, now_ms = services.metadata.image, services.clock.wall_ms()
    for topic in body.topics:
        is_readable = services.auth.authorize_topic(request, AclOperation.READ, topic.name)
        for part in topic.partitions:
            key = TopicPartition(topic.name, part.partition_index)
            if not is_readable:
                codes[key] = code_of(TopicAuthorizationError)
            elif image.partition(key) is None:
                codes[key] = code_of(UnknownTopicOrPartitionError)
            else:
                wanted[key] = _position(part, now_ms)

    def on_done(committed: dict[TopicPartition, int]) -> None:
        request.respond(_response(body, codes | committed, request.header.api_version))

    if wanted and body.group_id:
        _commit_verified(services, request, body, wanted, on_done)
    else:
        _commit(services, body, wanted, None, on_done)


def _commit_verified(
    services: BrokerServices,
    request: Request,
    body: TxnOffsetCommitRequest,
    wanted: dict[TopicPartition, CommittedOffset],
    on_done: _OnCommitted,
) -> None:
    """Commit offsets in a transaction that its coordinator knows (KIP-890)."""
    key = services.groups.partition_of(body.group_id)
    transaction = TransactionToVerify(
        body.transactional_id,
        body.producer_id,
        body.producer_epoch,
        adds_partitions=request.header.api_version >= _ADDS_PARTITIONS,
        has_abortable_error=request.header.api_version >= _ABORTABLE_ERRORS,
    )
    started = services.transaction_verification.begin(transaction, {key: NO_SEQUENCE})
    if key in started.refused:
        # Not the coordinator. Should it become one meanwhile, the transaction must be open.
        _commit(services, body, wanted, OPEN_TRANSACTION, on_done)
        return

    def on_verified(guards: Guards, refused: Refusals) -> None:
        error = coordinator_error(key, refused.get(key))
        if error is None:
            _commit(services, body, wanted, guards.get(key), on_done)
        else:
            on_done(dict.fromkeys(wanted, code_of(error)))

    services.transaction_verification.complete(started, on_verified)


def _commit(
    services: BrokerServices,
    body: TxnOffsetCommitRequest,
    wanted: dict[TopicPartition, CommittedOffset],
    guard: VerificationGuard | None,
    on_done: _OnCommitted,
) -> None:
    services.groups.commit_transactional_offsets(
        body.group_id,
        (body.member_id, body.group_instance_id, body.generation_id_or_member_epoch),
        wanted,
        TransactionOwner(body.producer_id, body.producer_epoch, guard),
        on_done,
    )


def _authorize(services: BrokerServices, request: Request, body: TxnOffsetCommitRequest) -> None:
    kind, transactional_id = ResourceType.TRANSACTIONAL_ID, body.transactional_id
    if not services.auth.authorize(request, AclOperation.WRITE, kind, transactional_id):
        raise TransactionalIdAuthorizationError("Transactional Id authorization failed.")
    if not services.auth.authorize_group(request, AclOperation.READ, body.group_id):
        raise GroupAuthorizationError(f"Not authorized to access group: {body.group_id}")


def _position(part: TxnOffsetCommitRequestPartition, now_ms: int) -> CommittedOffset:
    return CommittedOffset(
        offset=part.committed_offset,
        leader_epoch=part.committed_leader_epoch,
        metadata=part.committed_metadata or "",
        commit_timestamp_ms=now_ms,
    )


def _response(
    body: TxnOffsetCommitRequest, codes: dict[TopicPartition, int], version: int
) -> TxnOffsetCommitResponse:
    loading = code_of(CoordinatorLoadInProgressError)
    if version < _LOAD_IN_PROGRESS and loading in codes.values():
        unavailable = code_of(CoordinatorNotAvailableError)
        codes = {key: unavailable if code == loading else code for key, code in codes.items()}
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    TxnOffsetCommitResponsePartition(
                        partition_index=part.partition_index,
                        error_code=codes[TopicPartition(topic.name, part.partition_index)],
                    )
                    for part in topic.partitions
                ],
            )
            for topic in body.topics
        ]
    )


def _failed(body: TxnOffsetCommitRequest, code: int) -> TxnOffsetCommitResponse:
    codes = {
        TopicPartition(topic.name, part.partition_index): code
        for topic in body.topics
        for part in topic.partitions
    }
    return _response(body, codes, _LOAD_IN_PROGRESS)


APIS = (ServedApi(TxnOffsetCommitRequest, handle, _failed, max_version=5),)
