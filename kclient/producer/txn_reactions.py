"""Reactions of a producer to the errors of its transactional requests, as a table."""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType

from kclient.common.broker_errors import (
    CoordinatorNotAvailableError,
    FencedInstanceIdError,
    GroupAuthorizationError,
    GroupIdNotFoundError,
    IllegalGenerationError,
    InvalidPidMappingError,
    InvalidProducerEpochError,
    InvalidTxnStateError,
    NotCoordinatorError,
    OperationNotAttemptedError,
    ProducerFencedError,
    RequestTimedOutError,
    StaleMemberEpochError,
    TopicAuthorizationError,
    TransactionAbortableError,
    TransactionalIdAuthorizationError,
    UnknownMemberIdError,
    UnknownProducerIdError,
)
from kclient.common.errors import DisconnectedError, KafkaError
from kclient.protocol.api_keys import ApiKey


class Reaction(Enum):
    """What follows an error."""

    RETRY = "send the request again after a backoff"
    FIND_COORDINATOR = "find the coordinator, then send the request again"
    ABORTABLE = "the transaction can only be aborted"
    NEXT_EPOCH = "the transaction can only be aborted, and the next one needs another epoch"
    FATAL = "the producer can only be closed"


_INIT, _END = ApiKey.INIT_PRODUCER_ID, ApiKey.END_TXN
_PARTITIONS, _GROUP = ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ADD_OFFSETS_TO_TXN
_OFFSETS, _FIND = ApiKey.TXN_OFFSET_COMMIT, ApiKey.FIND_COORDINATOR
_R = Reaction


def _always(reaction: Reaction) -> Mapping[ApiKey, Reaction]:
    return dict.fromkeys((_INIT, _END, _PARTITIONS, _GROUP, _OFFSETS, _FIND), reaction)


REACTIONS: Mapping[type[KafkaError], Mapping[ApiKey, Reaction]] = MappingProxyType(
    {
        DisconnectedError: _always(_R.FIND_COORDINATOR),
        NotCoordinatorError: _always(_R.FIND_COORDINATOR),
        CoordinatorNotAvailableError: _always(_R.FIND_COORDINATOR),
        RequestTimedOutError: {_OFFSETS: _R.FIND_COORDINATOR},
        InvalidProducerEpochError: _always(_R.FATAL),
        ProducerFencedError: _always(_R.FATAL),
        InvalidPidMappingError: _always(_R.FATAL),
        InvalidTxnStateError: _always(_R.FATAL),
        TransactionalIdAuthorizationError: _always(_R.FATAL),
        TransactionAbortableError: _always(_R.ABORTABLE),
        UnknownProducerIdError: {
            _PARTITIONS: _R.NEXT_EPOCH,
            _GROUP: _R.NEXT_EPOCH,
            _END: _R.NEXT_EPOCH,
        },
        TopicAuthorizationError: {_PARTITIONS: _R.ABORTABLE},
        OperationNotAttemptedError: {_PARTITIONS: _R.ABORTABLE},
        GroupAuthorizationError: {
            _GROUP: _R.ABORTABLE,
            _OFFSETS: _R.ABORTABLE,
            _FIND: _R.ABORTABLE,
        },
        UnknownMemberIdError: {_OFFSETS: _R.ABORTABLE},
        IllegalGenerationError: {_OFFSETS: _R.ABORTABLE},
        StaleMemberEpochError: {_OFFSETS: _R.ABORTABLE},
        GroupIdNotFoundError: {_OFFSETS: _R.ABORTABLE},
        FencedInstanceIdError: {_OFFSETS: _R.ABORTABLE},
    }
)
"""Reactions by error and API, where they differ from the default of `reaction_to`."""


def reaction_to(error: KafkaError, api_key: ApiKey) -> Reaction:
    """Return what follows an error of a request.

    An error that is not in the table is retried if it is temporary. Otherwise the producer fails;
    partitions that cannot be added fail the transaction alone.
    """
    for kind, row in REACTIONS.items():
        if isinstance(error, kind) and api_key in row:
            return row[api_key]
    if error.retriable:
        return Reaction.RETRY
    return Reaction.ABORTABLE if api_key is _PARTITIONS else Reaction.FATAL
