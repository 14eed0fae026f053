"""Batches that a leader has not written."""

from math import inf

import pytest

from kclient.broker.raft.batch_accumulator import BatchAccumulator
from kclient.broker.raft.raft_types import MAX_BATCH_BYTES
from kclient.common.broker_errors import NotLeaderOrFollowerError, RecordBatchTooLargeError
from kclient.common.errors import BufferExhaustedError, InvalidArgumentError
from tests.support.quorum.memory_log import split


def test_each_call_is_one_batch() -> None:
    accumulator = BatchAccumulator(3, 10, 25, 1_000)
    assert accumulator.due_ms == inf
    first = accumulator.append([b"a", b"b"], 3, 1_000, 5.0)
    second = accumulator.append([b"c"], 3, 1_000, 9.0)
    assert (first.base_offset, first.last_offset, second.last_offset) == (10, 11, 12)
    assert accumulator.due_ms == 30.0
    data, batches = accumulator.drain()
    assert [len(batch.records()) for batch in split(data)] == [2, 1]
    assert batches == [first, second]
    assert accumulator.due_ms == inf
    accumulator.advance_to(20)
    assert accumulator.append([b"d"], 3, 1_000, 9.0).base_offset == 20


def test_refusals_append_nothing() -> None:
    accumulator = BatchAccumulator(3, 10, 25, 1_000)
    with pytest.raises(NotLeaderOrFollowerError):
        accumulator.append([b"a"], 2, 0, 0.0)
    with pytest.raises(InvalidArgumentError):
        accumulator.append([b"a"], 4, 0, 0.0)
    with pytest.raises(InvalidArgumentError):
        accumulator.append([], 3, 0, 0.0)
    with pytest.raises(RecordBatchTooLargeError):
        accumulator.append([bytes(MAX_BATCH_BYTES + 1)], 3, 0, 0.0)
    with pytest.raises(BufferExhaustedError):
        accumulator.append([bytes(1_001)], 3, 0, 0.0)
    assert accumulator.append([b"a"], 3, 0, 0.0).base_offset == 10
