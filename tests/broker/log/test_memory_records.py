"""Record batches of an append in memory."""

import pytest

from kclient.broker.log.memory_records import MemoryRecords
from kclient.common.broker_errors import CorruptRecordError, UnsupportedForMessageFormatError
from tests.support.disks.log_bench import make_batch

FIRST, SECOND = make_batch(2), make_batch(3)


def test_whole_batches_are_parsed_with_their_positions() -> None:
    records = MemoryRecords(FIRST + SECOND)
    assert [batch.count for batch in records.batches] == [2, 3]
    assert [batch.position for batch in records.batches] == [0, len(FIRST)]
    assert records.size_in_bytes == len(FIRST + SECOND) == len(records.content)
    assert records.error is None


@pytest.mark.parametrize("cut", [1, len(SECOND) - 61, len(SECOND) - 1])
def test_incomplete_last_batch_is_excluded(cut: int) -> None:
    records = MemoryRecords((FIRST + SECOND)[:-cut])
    assert len(records.batches) == 1
    assert records.content == FIRST
    assert records.error is None


@pytest.mark.parametrize("size", [0, 60])
def test_memory_without_a_whole_header_has_no_batches(size: int) -> None:
    records = MemoryRecords(FIRST[:size])
    assert (records.batches, records.size_in_bytes, records.error) == ([], 0, None)


@pytest.mark.parametrize(
    ("at", "value", "kind"),
    [
        (16, 1, UnsupportedForMessageFormatError),
        (16, 3, CorruptRecordError),
        (8, 0x80, CorruptRecordError),
        (8, 0x7F, CorruptRecordError),
    ],
    ids=["magic 1", "magic 3", "negative size", "size above the limit"],
)
def test_invalid_framing_ends_the_batches_with_an_error(
    at: int, value: int, kind: type[Exception]
) -> None:
    damaged = bytearray(SECOND)
    damaged[at] = value
    records = MemoryRecords(FIRST + damaged + FIRST)
    assert len(records.batches) == 1
    assert isinstance(records.error, kind)
    assert f"position {len(FIRST)}" in str(records.error)


def test_batches_are_views_of_writable_memory() -> None:
    memory = bytearray(FIRST)
    MemoryRecords(memory).batches[0].assign(77, 3)
    assert MemoryRecords(memory).batches[0].base_offset == 77


def test_read_only_memory_is_copied_once() -> None:
    memory = bytes(FIRST)
    records = MemoryRecords(memory)
    records.batches[0].assign(77, 3)
    assert memory == FIRST
    assert MemoryRecords(records.content).batches[0].base_offset == 77


def test_copy_has_memory_of_its_own() -> None:
    memory = bytearray(FIRST + SECOND[:-1])
    copied = MemoryRecords(memory).copy()
    memory[:] = bytes(len(memory))
    assert copied.content == FIRST
    assert copied.batches[0].is_valid()
