"""Data of one partition: records taken, put back and dropped, and the backlog of its broker."""

from collections.abc import Iterable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kclient.common.errors import KafkaError
from kclient.consumer.completed_fetch import AbortedTransactions, CompletedFetch, NodeBacklog
from kclient.consumer.consumer_config import CONSUMER_CONFIG
from kclient.consumer.errors import CorruptBatchError, IncompleteBatchError
from kclient.consumer.topic_partition_state import FetchPosition, TopicPartitionState
from kclient.protocol.messages.fetch import AbortedTransaction, PartitionData
from kclient.record import ColumnBuilder, ConsumerRecord, ControlRecordType, read_batches
from tests.consumer.conftest import ORDERS_0, offsets
from tests.consumer.transactions import abort, end
from tests.support.virtual.virtual_log_broker import VirtualLog

PLAIN = {"bootstrap_servers": "h:1"}


CONFIG = CONSUMER_CONFIG.parse(PLAIN)


READ_COMMITTED = CONSUMER_CONFIG.parse({**PLAIN, "isolation_level": "read_committed"})


def log_of(*counts: int) -> VirtualLog:
    log = VirtualLog()
    for count in counts:
        start = log.end_offset
        log.append(*(b"%d" % offset for offset in range(start, start + count)))
    return log


class Fetch:
    """A fetch of a log, with its backlog."""

    def __init__(
        self, log: VirtualLog, offset: int = 0, *, error_code: int = 0, committed: bool = False
    ) -> None:
        self.state = TopicPartitionState(ORDERS_0, {})
        self.backlog = NodeBacklog(1, {})
        data = PartitionData(
            partition_index=0,
            error_code=error_code,
            high_watermark=log.end_offset,
            records=b"".join(batch for _, last, batch in log.batches if last > offset),
            aborted_transactions=[
                AbortedTransaction(producer_id=producer, first_offset=first)
                for producer, first, _ in log.aborted
            ],
        )
        self.made = CompletedFetch(
            self.state,
            data,
            FetchPosition(offset, 0),
            self.backlog,
            READ_COMMITTED if committed else CONFIG,
            deserializes=False,
        )
        self.backlog.add(self.made.size)

    def take(self, count: int = 100) -> list[int]:
        return offsets(self.made.take(count))

    def columns(self, count: int = 100) -> list[int]:
        builder = ColumnBuilder()
        self.made.take_columns(builder, count)
        return memoryview(builder.finish().offsets).cast("B").cast("q").tolist()


def test_each_take_returns_the_next_records() -> None:
    fetch = Fetch(log_of(3, 2))
    assert fetch.take(2) == [0, 1]
    assert (fetch.made.next_fetch_offset, fetch.made.is_exhausted()) == (2, False)
    assert fetch.take(2) == [2, 3]
    assert fetch.take() == [4]
    assert (fetch.made.next_fetch_offset, fetch.made.last_epoch) == (5, 1)
    assert fetch.made.is_exhausted()
    assert fetch.take() == []


def test_end_is_known_before_a_record_is_decoded() -> None:
    fetch = Fetch(log_of(3, 2), 1)
    assert fetch.made.end == FetchPosition(5, 1)
    assert Fetch(VirtualLog()).made.end == FetchPosition(0, 0)
    assert Fetch(log_of(1), error_code=6).made.end is None


def test_records_before_the_fetch_offset_are_skipped() -> None:
    assert Fetch(log_of(3, 3), 2).take() == [2, 3, 4, 5]


def test_backlog_shrinks_by_consumed_batches() -> None:
    fetch = Fetch(log_of(2, 2, 2))
    whole = fetch.backlog.bytes
    assert whole == fetch.made.size > 0
    fetch.take(3)
    assert fetch.backlog.bytes == pytest.approx(whole * 2 / 3, rel=0.1)
    fetch.made.drop()
    assert fetch.backlog.bytes == 0
    assert fetch.made.is_exhausted()
    fetch.made.drop()
    assert fetch.backlog.bytes == 0


def test_paused_data_does_not_count_as_backlog() -> None:
    fetch = Fetch(log_of(2, 2))
    whole = fetch.backlog.bytes
    assert not fetch.made.is_aside
    for _ in range(2):
        fetch.made.set_aside(paused=True)
        assert (fetch.made.is_aside, fetch.backlog.bytes) == (True, 0)
    fetch.made.set_aside(paused=False)
    assert fetch.backlog.bytes == whole


def test_next_fetch_is_sent_when_half_of_a_response_is_consumed() -> None:
    moved: dict[int, NodeBacklog] = {}
    backlog = NodeBacklog(7, moved)
    assert backlog.is_low()
    backlog.add_response(100)
    assert moved == {7: backlog}
    moved.clear()
    backlog.use(49)
    assert (backlog.is_low(), moved) == (False, {7: backlog})
    backlog.use(1)
    assert backlog.is_low()


def test_records_put_back_are_taken_again_first() -> None:
    fetch = Fetch(log_of(5, 5))
    taken = fetch.made.take(4)
    fetch.made.put_back(taken, 1)
    assert fetch.made.next_fetch_offset == 1
    assert fetch.take(2) == [1, 2]
    assert fetch.take() == [3]  # the rest of them, and no others
    assert fetch.take() == [4, 5, 6, 7, 8, 9]


def test_records_put_back_twice_keep_their_order() -> None:
    fetch = Fetch(log_of(6))
    taken = fetch.made.take(5)
    fetch.made.put_back(taken, 2)
    again = fetch.made.take(2)
    fetch.made.put_back(again, 0)
    assert fetch.take() == [2, 3, 4]
    assert fetch.take() == [5]


def test_put_back_of_nothing_changes_nothing() -> None:
    fetch = Fetch(log_of(3))
    taken = fetch.made.take(2)
    fetch.made.put_back(taken, 2)
    assert fetch.made.next_fetch_offset == 2
    assert fetch.take() == [2]


@given(
    counts=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    steps=st.lists(
        st.tuples(st.integers(1, 6), st.integers(0, 6), st.booleans()), min_size=1, max_size=10
    ),
)
@example(counts=[2], steps=[(2, 0, False), (1, 0, True)])  # the batch is read again, in part
def test_any_mixture_of_takes_returns_each_record_once(
    counts: list[int], steps: Iterable[tuple[int, int, bool]]
) -> None:
    fetch = Fetch(log_of(*counts))
    seen: list[int] = []
    for count, consumed, columns in steps:
        if columns:
            seen += fetch.columns(count)
            continue
        taken: list[ConsumerRecord] = fetch.made.take(count)
        used = min(consumed, len(taken))
        fetch.made.put_back(taken, used)
        seen += offsets(taken[:used])
        assert fetch.made.next_fetch_offset == len(seen)
    while not fetch.made.is_exhausted():
        seen += fetch.take()
    assert seen == list(range(sum(counts)))
    assert fetch.backlog.bytes == 0


def test_corrupt_batch_is_raised_after_the_records_before_it() -> None:
    log = log_of(2, 2)
    base, last, data = log.batches[1]
    log.batches[1] = (base, last, data[:-1] + bytes([data[-1] ^ 1]))
    fetch = Fetch(log)
    assert fetch.take() == [0, 1]
    for _ in range(2):
        with pytest.raises(CorruptBatchError) as caught:
            fetch.take()
        assert (caught.value.offset, caught.value.next_offset) == (2, 4)
        assert fetch.made.next_fetch_offset == 2


def test_response_without_a_whole_batch_is_an_error() -> None:
    log = log_of(2)
    base, last, data = log.batches[0]
    log.batches[0] = (base, last, data[:-1])
    fetch = Fetch(log)
    assert fetch.made.end is None
    with pytest.raises(IncompleteBatchError, match="raise max_partition_fetch_bytes"):
        fetch.take()


def test_incomplete_batch_after_a_whole_one_is_left_out() -> None:
    log = log_of(2, 2)
    base, last, data = log.batches[1]
    log.batches[1] = (base, last, data[:-1])
    fetch = Fetch(log)
    assert fetch.made.end == FetchPosition(2, 1)
    assert fetch.take() == [0, 1]
    assert fetch.made.is_exhausted()


def test_aborted_records_are_hidden_from_committed_readers() -> None:
    log = VirtualLog()
    log.append(b"kept")
    log.append(b"gone", b"gone", producer_id=5)
    log.append(b"other", producer_id=6)
    abort(log, 5, 1)
    end(log, 6, ControlRecordType.COMMIT)
    log.append(b"kept")
    fetch = Fetch(log, committed=True)
    assert fetch.take() == [0, 3, 6]
    assert fetch.made.next_fetch_offset == 7
    assert Fetch(log).take() == [0, 1, 2, 3, 6]


def test_transaction_state_survives_a_put_back() -> None:
    log = VirtualLog()
    log.append(b"a", b"b", producer_id=5)
    log.append(b"c", producer_id=6)
    abort(log, 5, 0)
    log.append(b"d", producer_id=5)
    end(log, 5, ControlRecordType.COMMIT)
    end(log, 6, ControlRecordType.COMMIT)
    fetch = Fetch(log, committed=True)
    taken = fetch.made.take(100)
    fetch.made.put_back(taken, 0)
    assert fetch.columns() == offsets(taken) == [2, 4]


def test_abort_marker_ends_the_hidden_transaction() -> None:
    log = VirtualLog()
    log.append(b"a", producer_id=5)
    abort(log, 5, 0)
    log.append(b"b", producer_id=5)
    transactions = AbortedTransactions([(0, 5)])
    batches = read_batches(b"".join(data for _, _, data in log.batches))
    assert [transactions.hides(batch) for batch in batches] == [True, False, False]


def test_error_of_a_fetch_is_a_kafka_error_with_its_cause() -> None:
    log = log_of(1)
    base, last, data = log.batches[0]
    log.batches[0] = (base, last, data[:16] + b"\x07" + data[17:])  # unknown magic byte
    with pytest.raises(KafkaError, match="orders-0 at offset 0"):
        Fetch(log).take()


def test_epoch_is_that_of_the_last_record_taken() -> None:
    log = VirtualLog()
    for epoch in (3, 4, 5):
        log.append(b"a", b"b", epoch=epoch)
    fetch = Fetch(log)
    taken = fetch.made.take(6)
    assert fetch.made.last_epoch == 5
    fetch.made.put_back(taken, 1)
    assert fetch.made.last_epoch == 3
    assert fetch.take(3) == [1, 2, 3]
    assert fetch.made.last_epoch == 4
    fetch.made.put_back(fetch.made.take(2), 0)
    assert fetch.made.last_epoch == 4
