"""Conclusions about a batch from the end of its Produce request."""

import pytest

from kclient.common.broker_errors import (
    DuplicateSequenceError,
    NotEnoughReplicasAfterAppendError,
    NotEnoughReplicasError,
    NotLeaderOrFollowerError,
    OutOfOrderSequenceError,
    RecordTooLargeError,
    TopicExistsError,
)
from kclient.common.errors import DisconnectedError, KafkaError
from kclient.producer.append_outcome import (
    ALL_REPLICAS,
    APPEND_TABLE,
    AppendOutcome,
    append_outcome,
)

WRITTEN, NOT_WRITTEN = AppendOutcome.WRITTEN, AppendOutcome.NOT_WRITTEN
NEVER_WRITTEN, UNKNOWN = AppendOutcome.NEVER_WRITTEN, AppendOutcome.UNKNOWN


@pytest.mark.parametrize(
    ("error", "leader_only", "all_replicas"),
    [
        (None, WRITTEN, WRITTEN),
        (DuplicateSequenceError("x"), WRITTEN, WRITTEN),
        (RecordTooLargeError("x"), NOT_WRITTEN, NOT_WRITTEN),
        (NotEnoughReplicasError("x"), NOT_WRITTEN, NOT_WRITTEN),
        (NotEnoughReplicasAfterAppendError("x"), UNKNOWN, UNKNOWN),
        (NotLeaderOrFollowerError("x"), NOT_WRITTEN, UNKNOWN),
    ],
)
def test_outcome_depends_on_the_error_and_on_acks(
    error: KafkaError | None, leader_only: AppendOutcome, all_replicas: AppendOutcome
) -> None:
    assert append_outcome(error, 1, idempotent=True) is leader_only
    assert append_outcome(error, ALL_REPLICAS, idempotent=True) is all_replicas


def test_out_of_order_sequence_proves_more_with_idempotence() -> None:
    error = OutOfOrderSequenceError("x")
    assert append_outcome(error, ALL_REPLICAS, idempotent=True) is NEVER_WRITTEN
    assert append_outcome(error, ALL_REPLICAS, idempotent=False) is NOT_WRITTEN


@pytest.mark.parametrize("error", [DisconnectedError("x"), TopicExistsError("x"), KafkaError("x")])
def test_error_outside_the_table_proves_nothing(error: KafkaError) -> None:
    assert type(error) not in APPEND_TABLE
    assert append_outcome(error, 1, idempotent=True) is UNKNOWN


def test_outcome_with_acks_1_is_never_less_certain_than_with_acks_all() -> None:
    for kind, row in APPEND_TABLE.items():
        if row.leader_only is UNKNOWN:
            assert row.all_replicas is UNKNOWN, kind
