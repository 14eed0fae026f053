"""Fetch requests."""

from kclient.common.broker_errors import (
    FetchSessionIdNotFoundError,
    InconsistentTopicIdError,
    OffsetOutOfRangeError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
    code_of,
)
from kclient.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from kclient.protocol.messages.log_offsets import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from kclient.protocol.messages.topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from tests.support.clients.wire import Wire, batch, fetch_request, records_of


def test_first_batch_is_complete_even_if_larger_than_limit(wire: Wire, topic: str) -> None:
    wire.produce(topic, batch([b"a" * 5000]))
    wire.produce(topic, batch([b"b" * 5000]))
    found = wire.fetch(topic, 0, max_bytes=100)
    assert [record.value[:1] for record in records_of(found.records) if record.value] == [b"a"]
    assert found.high_watermark == 2


def test_large_fetch_returns_identical_bytes(wire: Wire, topic: str) -> None:
    sent = b""
    for number in range(12):
        data = bytearray(batch([bytes([number]) * 50_000 for _ in range(3)]))
        assert wire.produce(topic, bytes(data)).base_offset == 3 * number
        # The broker sets base offset and leader epoch of a batch.
        data[:8], data[12:16] = (3 * number).to_bytes(8, "big"), bytes(4)
        sent += data
    found = wire.fetch(topic, 0, max_bytes=10_000_000)
    assert found.records == sent
    cut_off = wire.fetch(topic, 0, max_bytes=400_000)
    assert cut_off.records == sent[:400_000]
    assert len(records_of(cut_off.records)) == 6
    from_the_middle = wire.fetch(topic, 16, max_bytes=10_000_000)
    assert records_of(from_the_middle.records)[0].offset == 15


def test_long_poll_completes_with_first_record(wire: Wire, other: Wire, topic: str) -> None:
    wire.send(fetch_request(topic, 0, max_wait_ms=600_000), 12)
    other.produce(topic, batch([b"a"]))
    _, response = wire.receive(FetchResponse, 12)
    assert len(records_of(response.responses[0].partitions[0].records)) == 1


def test_long_poll_waits_for_min_bytes(wire: Wire, other: Wire, topic: str) -> None:
    wire.send(fetch_request(topic, 0, max_wait_ms=9000, min_bytes=600), 12)
    for _ in range(3):
        other.produce(topic, batch([b"a" * 200]))
    _, response = wire.receive(FetchResponse, 12)
    assert len(records_of(response.responses[0].partitions[0].records)) == 3


def test_fetch_with_min_bytes_above_its_max_bytes_does_not_wait(wire: Wire, topic: str) -> None:
    for _ in range(3):
        wire.produce(topic, batch([b"a" * 1000]))
    found = wire.fetch(topic, 0, max_wait_ms=600_000, min_bytes=200_000, max_bytes=1_500)
    assert found.records is not None
    assert len(found.records) == 1_500


def test_long_poll_without_records_returns_offsets(wire: Wire, topic: str) -> None:
    wire.produce(topic, batch([b"a", b"b"]))
    found = wire.fetch(topic, 2, max_wait_ms=50)
    assert (found.error_code, found.records) == (0, b"")
    assert (found.high_watermark, found.last_stable_offset, found.log_start_offset) == (2, 2, 0)


def test_topic_deletion_completes_long_poll(wire: Wire, other: Wire, topic: str) -> None:
    wire.send(fetch_request(topic, 0, max_wait_ms=9000), 12)
    other.ask(DeleteTopicsRequest(topic_names=[topic], timeout_ms=10_000), 4, DeleteTopicsResponse)
    _, response = wire.receive(FetchResponse, 12)
    unknown = code_of(UnknownTopicOrPartitionError())
    assert response.responses[0].partitions[0].error_code == unknown


def test_fetch_out_of_range_returns_no_offsets(wire: Wire, topic: str) -> None:
    """As in Kafka; consumers reset their offsets with ListOffsets."""
    wire.produce(topic, batch([b"a"]))
    found = wire.fetch(topic, 5)
    assert found.error_code == code_of(OffsetOutOfRangeError())
    offsets = (found.high_watermark, found.last_stable_offset, found.log_start_offset)
    assert offsets == (-1, -1, -1)


def test_fetch_by_topic_id(wire: Wire) -> None:
    topic_id = wire.create_topic("fetched-by-id")
    wire.produce("fetched-by-id", batch([b"a"]))
    part = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    topics = [FetchTopic(topic_id=chosen, partitions=[part]) for chosen in (topic_id, b"\7" * 16)]
    request = FetchRequest(max_wait_ms=5000, min_bytes=1, topics=topics)
    response = wire.ask(request, 17, FetchResponse)
    known, unknown = (topic.partitions[0] for topic in response.responses)
    assert len(records_of(known.records)) == 1
    assert unknown.error_code == code_of(UnknownTopicIdError())


def session_request(topic: FetchTopic, session_id: int = 0, epoch: int = 0) -> FetchRequest:
    return FetchRequest(
        max_wait_ms=0, min_bytes=1, session_id=session_id, session_epoch=epoch, topics=[topic]
    )


def wanted(index: int, offset: int = 0) -> FetchPartition:
    return FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)


def returned(response: FetchResponse) -> list[tuple[int, int, int]]:
    """Return index, error code and number of records of each partition in a response."""
    assert response.error_code == 0
    return [
        (part.partition_index, part.error_code, len(records_of(part.records)))
        for found in response.responses
        for part in found.partitions
    ]


def test_incremental_fetch_returns_only_what_changed(wire: Wire) -> None:
    topic_id = wire.create_topic("in-session", partitions=5)
    every = FetchTopic(topic_id=topic_id, partitions=[wanted(index) for index in range(5)])
    first = wire.ask(session_request(every), 17, FetchResponse)
    assert first.session_id > 0
    assert returned(first) == [(index, 0, 0) for index in range(5)]
    nothing = FetchRequest(max_wait_ms=0, session_id=first.session_id, session_epoch=1)
    assert returned(wire.ask(nothing, 17, FetchResponse)) == []
    wire.produce("in-session", batch([b"a", b"b"]), partition=3)
    nothing.session_epoch = 2
    found = wire.ask(nothing, 17, FetchResponse)
    assert (found.session_id, returned(found)) == (first.session_id, [(3, 0, 2)])
    moved = FetchTopic(topic_id=topic_id, partitions=[wanted(3, offset=2)])
    request = session_request(moved, first.session_id, 3)
    assert returned(wire.ask(request, 17, FetchResponse)) == []


def test_incremental_fetch_waits_for_partitions_it_does_not_name(wire: Wire, other: Wire) -> None:
    topic_id = wire.create_topic("session-waits", partitions=2)
    every = FetchTopic(topic_id=topic_id, partitions=[wanted(0), wanted(1)])
    first = wire.ask(session_request(every), 17, FetchResponse)
    waiting = FetchRequest(
        max_wait_ms=600_000, min_bytes=1, session_id=first.session_id, session_epoch=1
    )
    wire.send(waiting, 17)
    other.produce("session-waits", batch([b"a"]), partition=1)
    assert returned(wire.receive(FetchResponse, 17)[1]) == [(1, 0, 1)]


def test_deleted_and_recreated_topics_of_a_session_have_an_error(wire: Wire) -> None:
    topic_id = wire.create_topic("recreated-in-session")
    topic = FetchTopic(topic_id=topic_id, partitions=[wanted(0)])
    session_id = wire.ask(session_request(topic), 17, FetchResponse).session_id
    delete = DeleteTopicsRequest(topic_names=["recreated-in-session"], timeout_ms=10_000)
    wire.ask(delete, 4, DeleteTopicsResponse)
    request = FetchRequest(max_wait_ms=0, session_id=session_id, session_epoch=1)
    deleted = code_of(UnknownTopicOrPartitionError())
    assert returned(wire.ask(request, 17, FetchResponse)) == [(0, deleted, 0)]
    wire.create_topic("recreated-in-session")
    request.session_epoch = 2
    recreated = code_of(InconsistentTopicIdError())
    assert returned(wire.ask(request, 17, FetchResponse)) == [(0, recreated, 0)]


def test_incremental_fetch_returns_an_advanced_log_start_offset(wire: Wire) -> None:
    topic_id = wire.create_topic("shortened-in-session", partitions=2)
    wire.produce("shortened-in-session", batch([b"a", b"b"]), partition=1)
    topic = FetchTopic(topic_id=topic_id, partitions=[wanted(0), wanted(1, offset=2)])
    session_id = wire.ask(session_request(topic), 17, FetchResponse).session_id
    request = FetchRequest(max_wait_ms=0, session_id=session_id, session_epoch=1)
    assert returned(wire.ask(request, 17, FetchResponse)) == []
    partition = DeleteRecordsPartition(partition_index=1, offset=1)
    deletion = DeleteRecordsTopic(name="shortened-in-session", partitions=[partition])
    wire.ask(DeleteRecordsRequest(topics=[deletion]), 2, DeleteRecordsResponse)
    request.session_epoch = 2
    (found,) = wire.ask(request, 17, FetchResponse).responses[0].partitions
    assert (found.partition_index, found.log_start_offset, found.records) == (1, 1, b"")


def test_unknown_session_has_an_error(wire: Wire, topic: str) -> None:
    request = fetch_request(topic, 0)
    request.session_id, request.session_epoch = 7, 1
    response = wire.ask(request, 12, FetchResponse)
    assert response.error_code == code_of(FetchSessionIdNotFoundError())
    assert (response.session_id, response.responses) == (0, [])


def test_leader_epochs_are_checked(wire: Wire, topic: str) -> None:
    request = fetch_request(topic, 0)
    request.topics[0].partitions[0].current_leader_epoch = 3
    response = wire.ask(request, 12, FetchResponse)
    assert response.responses[0].partitions[0].error_code == 75
