"""Division of decisions into batches."""

from collections.abc import Sequence

import pytest

from kclient.broker.controller.cluster_view import ControllerResult
from kclient.broker.controller.record_batches import MAX_BYTES, batches_of, estimated_bytes
from kclient.broker.metadata.metadata_version import MetadataVersion
from kclient.common.broker_errors import PolicyViolationError
from kclient.protocol.messages.metadata_records import (
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    MetadataRecord,
    NoOpRecord,
)

NEWEST = MetadataVersion.IBP_4_0_IV3


def names(batches: Sequence[Sequence[MetadataRecord]]) -> list[list[str]]:
    return [[type(each).__name__.removesuffix("Record") for each in batch] for batch in batches]


def test_small_decision_is_one_batch() -> None:
    result = ControllerResult([NoOpRecord()] * 3, None)
    assert names(batches_of(result, NEWEST, 3)) == [["NoOp"] * 3]
    assert batches_of(ControllerResult((), None), NEWEST) == []


def test_large_decision_is_a_transaction() -> None:
    result = ControllerResult([NoOpRecord()] * 5, None)
    assert names(batches_of(result, NEWEST, 4)) == [
        ["BeginTransaction"],
        ["NoOp"] * 4,
        ["NoOp"],
        ["EndTransaction"],
    ]
    with pytest.raises(PolicyViolationError, match="atomically"):
        batches_of(result, MetadataVersion.IBP_3_6_IV0, 4)


def test_decision_that_is_not_atomic_has_no_transaction() -> None:
    result = ControllerResult([NoOpRecord()] * 5, None, is_atomic=False)
    assert names(batches_of(result, NEWEST, 4)) == [["NoOp"] * 4, ["NoOp"]]


def test_transaction_of_the_decision_itself_is_not_wrapped() -> None:
    records = [BeginTransactionRecord(), NoOpRecord(), NoOpRecord(), EndTransactionRecord()]
    assert len(batches_of(ControllerResult(records, None), NEWEST, 2)) == 2


def test_batches_are_limited_in_bytes() -> None:
    record = ConfigRecord(resource_type=2, resource_name="t", name="n", value="v" * 1_000_000)
    batches = batches_of(ControllerResult([record] * 10, None, is_atomic=False), NEWEST)
    assert sum(map(len, batches)) == 10
    assert all(sum(map(estimated_bytes, batch)) <= MAX_BYTES for batch in batches)
