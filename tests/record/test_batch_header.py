"""Header of a batch: fields, flags and sequence arithmetic."""

from copy import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kclient.common.errors import CompressionError
from kclient.record import (
    RECORD_BATCH_OVERHEAD,
    CompressionType,
    RecordBatch,
    RecordBatchBuilder,
    TimestampType,
    decrement_sequence,
    in_sequence,
    increment_sequence,
    parse_header,
)
from kclient.record.batch_header import MAX_SEQUENCE, BatchHeader, batch_attributes


@given(st.integers(0, MAX_SEQUENCE), st.integers(0, MAX_SEQUENCE))
def test_sequence_arithmetic_wraps(sequence: int, step: int) -> None:
    forward = increment_sequence(sequence, step)
    assert 0 <= forward <= MAX_SEQUENCE
    assert decrement_sequence(forward, step) == sequence
    assert in_sequence(sequence, forward) == (step == 1)


@pytest.fixture
def header() -> BatchHeader:
    builder = RecordBatchBuilder(bytearray(1000), base_offset=10)
    builder.append(1000, b"k", b"v")
    builder.append_with_offset(15, 2000, b"k", b"v")
    sealed = builder.seal(7, 3, MAX_SEQUENCE - 1, transactional=True, partition_leader_epoch=4)
    return parse_header(b"junk" + sealed, 4, 1004)


def test_parsed_fields(header: BatchHeader) -> None:
    assert (header.position, header.end_position) == (1004, 1004 + header.size_in_bytes)
    assert header.size_in_bytes > RECORD_BATCH_OVERHEAD
    assert (header.base_offset, header.last_offset, header.next_offset) == (10, 15, 16)
    assert (header.partition_leader_epoch, header.magic, header.count) == (4, 2, 2)
    assert (header.base_timestamp, header.max_timestamp) == (1000, 2000)
    assert (header.producer_id, header.producer_epoch) == (7, 3)
    assert header.has_producer_id


def changed(header: BatchHeader, **fields: int) -> BatchHeader:
    other = copy(header)
    for name, value in fields.items():
        setattr(other, name, value)
    return other


def test_record_batch_has_the_same_header(header: BatchHeader) -> None:
    builder = RecordBatchBuilder(bytearray(1000))
    builder.append(1, None, b"v")
    sealed = builder.seal()
    assert (
        repr(parse_header(sealed, 0, 0)).partition("(")[2]
        == repr(RecordBatch(sealed)).partition("(")[2]
    )


def test_last_sequence_of_header_wraps(header: BatchHeader) -> None:
    assert header.last_sequence == 3
    assert changed(header, base_sequence=-1).last_sequence == -1


def test_flags(header: BatchHeader) -> None:
    assert header.is_transactional
    assert not header.is_control
    assert header.delete_horizon_ms is None
    assert header.compression_type is CompressionType.NONE
    assert header.timestamp_type is TimestampType.CREATE_TIME
    marked = changed(
        header,
        attributes=0x40
        | batch_attributes(
            CompressionType.ZSTD, TimestampType.LOG_APPEND_TIME, transactional=False, control=True
        ),
    )
    assert marked.is_control
    assert not marked.is_transactional
    assert marked.delete_horizon_ms == 1000
    assert marked.compression_type is CompressionType.ZSTD
    assert marked.timestamp_type is TimestampType.LOG_APPEND_TIME


def test_unknown_codec_id_is_an_error(header: BatchHeader) -> None:
    with pytest.raises(CompressionError, match="got id 7"):
        changed(header, attributes=7).compression_type  # noqa: B018 (the property raises)


def test_headers_with_equal_fields_are_equal(header: BatchHeader) -> None:
    assert changed(header) == header
    for name in BatchHeader.__slots__:
        assert changed(header, **{name: getattr(header, name) + 1}) != header
    assert header != object()
    assert repr(header).startswith(f"BatchHeader(position={header.position}, size_in_bytes=")
