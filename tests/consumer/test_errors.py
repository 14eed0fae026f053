"""Errors of consumers: their texts and attributes, and the place added to a decoding error."""

import pytest

from kclient.common.broker_errors import (
    CorruptRecordError,
    OffsetOutOfRangeError,
    RecordTooLargeError,
    UnsupportedForMessageFormatError,
)
from kclient.common.errors import CompressionError, InvalidOffsetError, KafkaError
from kclient.common.types import OffsetAndMetadata
from kclient.consumer.errors import (
    CorruptBatchError,
    IncompleteBatchError,
    LogTruncationError,
    OffsetsOutOfRangeError,
    UndecompressableBatchError,
    UnreadableBatchError,
    UnsupportedBatchError,
    lacks_place,
    unreadable,
)
from tests.consumer.conftest import ORDERS_0, ORDERS_1


@pytest.mark.parametrize(
    ("general", "located"),
    [
        (CorruptRecordError, CorruptBatchError),
        (CompressionError, UndecompressableBatchError),
        (UnsupportedForMessageFormatError, UnsupportedBatchError),
    ],
)
def test_decoding_error_gets_partition_and_offset(
    general: type[KafkaError], located: type[UnreadableBatchError]
) -> None:
    error = general("it is broken")
    assert lacks_place(error)
    found = unreadable(error, ORDERS_0, 7, 12)
    assert type(found) is located
    assert isinstance(found, general)
    assert str(found) == "orders-0 at offset 7: it is broken; seek to 12 to continue"
    assert (found.topic_partition, found.offset, found.next_offset) == (ORDERS_0, 7, 12)
    assert found.__cause__ is error
    assert not lacks_place(found)


def test_error_that_has_a_place_is_unchanged() -> None:
    error = CorruptBatchError(ORDERS_0, 3, 4, "wrong checksum")
    assert unreadable(error, ORDERS_1, 8, 9) is error


def test_other_errors_are_unchanged() -> None:
    error = KafkaError("something else")
    assert not lacks_place(error)
    assert unreadable(error, ORDERS_0, 3, 4) is error


def test_seek_to_the_next_offset_always_advances() -> None:
    found = unreadable(CorruptRecordError("x"), ORDERS_0, 7, 7)
    assert isinstance(found, CorruptBatchError)
    assert found.next_offset == 8


def test_incomplete_batch_is_corrupt_and_too_large() -> None:
    error = IncompleteBatchError(ORDERS_0, 3, 4, "got 10 bytes")
    assert isinstance(error, CorruptRecordError)
    assert isinstance(error, RecordTooLargeError)


def test_out_of_range_error_has_all_positions() -> None:
    error = OffsetsOutOfRangeError({ORDERS_0: 5, ORDERS_1: 9})
    assert isinstance(error, OffsetOutOfRangeError)
    assert isinstance(error, InvalidOffsetError)
    assert str(error).startswith("position out of range: orders-0 at 5, orders-1 at 9; seek")
    assert error.offsets == {ORDERS_0: 5, ORDERS_1: 9}


def test_truncation_error_has_the_divergent_offsets_that_are_known() -> None:
    error = LogTruncationError({ORDERS_0: 5, ORDERS_1: 9}, {ORDERS_0: OffsetAndMetadata(3)})
    assert str(error) == (
        "log truncated: orders-0 at 5, diverging at 3, orders-1 at 9, diverging at an unknown "
        "offset; seek to continue"
    )
    assert error.divergent == {ORDERS_0: OffsetAndMetadata(3)}
