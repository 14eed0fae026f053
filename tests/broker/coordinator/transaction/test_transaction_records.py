"""Records of ``__transaction_state``."""

import pytest

from kclient.broker.coordinator.transaction.transaction_metadata import TransactionMetadata
from kclient.broker.coordinator.transaction.transaction_records import (
    decode_record,
    transaction_record,
)
from kclient.broker.coordinator.transaction.transaction_state import TransactionState
from kclient.common.errors import ProtocolError
from kclient.common.types import TopicPartition

PARTITIONS = frozenset({TopicPartition("b", 1), TopicPartition("a", 2), TopicPartition("b", 0)})
ONGOING = TransactionMetadata(
    "id",
    7,
    3,
    60_000,
    TransactionState.ONGOING,
    PARTITIONS,
    start_ms=11,
    last_update_ms=12,
    previous_producer_id=5,
    next_producer_id=9,
    client_version=2,
)


def test_transaction_returns_from_its_record() -> None:
    key, value = transaction_record(ONGOING, 2).encode()
    assert key == b"\x00\x00\x00\x02id"
    assert value is not None
    assert value[:2] == b"\x00\x01"
    assert decode_record(key, value) == ("id", ONGOING)


def test_first_version_has_no_tagged_fields() -> None:
    key, value = transaction_record(ONGOING, 0).encode()
    assert value is not None
    assert value.hex() == (
        "0000"  # version
        "0000000000000007" "0003" "0000ea60" "01"
        "00000002" "000161" "00000001" "00000002" "000162" "00000002" "00000000" "00000001"
        "000000000000000c" "000000000000000b"
    )  # fmt: skip
    found = decode_record(key, value)
    assert found is not None
    assert found[1] is not None
    assert (found[1].previous_producer_id, found[1].client_version) == (-1, 0)


def test_empty_state_has_null_instead_of_partitions() -> None:
    empty = TransactionMetadata("id", 7, 0, 60_000, TransactionState.EMPTY)
    _key, value = transaction_record(empty, 0).encode()
    assert value is not None
    assert b"\x00" + b"\xff" * 4 in value


def test_expired_id_has_a_tombstone() -> None:
    rest = TransactionMetadata("id", 7, 0, 60_000, TransactionState.EMPTY)
    key, value = transaction_record(rest.expired(5), 2).encode()
    assert value is None
    assert decode_record(key, None) == ("id", None)


def test_unknown_kind_of_record_is_skipped() -> None:
    assert decode_record(b"\x00\x07\x00\x02id", b"\x00\x00") is None


@pytest.mark.parametrize("status", [6, 7, 8, -1])
def test_states_that_are_not_stored_are_refused(status: int) -> None:
    key, value = transaction_record(ONGOING, 0).encode()
    assert value is not None
    broken = bytearray(value)
    broken[16:17] = status.to_bytes(1, "big", signed=True)
    with pytest.raises(ProtocolError, match=f"got {status}, expected 0 to 5"):
        decode_record(key, bytes(broken))
