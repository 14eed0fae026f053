"""The source's micro-batches, asked for as Spark asks, on a cluster and without a JVM."""

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from kclient import TopicPartition
from kclient.common.broker_errors import UnknownTopicOrPartitionError
from kclient.common.errors import ConfigError
from kclient.spark.errors import DataLossError, UnsupportedSparkVersionError
from kclient.spark.options import SourceOptions
from kclient.spark.source import stream_readers
from kclient.spark.source.limited_stream_reader import LimitedStreamReader
from kclient.spark.source.stream_reader import StreamReader, UnlimitedStreamReader
from kclient.testing import EmbeddedCluster
from tests.support.desk import Desk, place
from tests.support.travelled import travelled

Options = Mapping[str, str]


class Query:
    """What Spark does with a source: it keeps ends in a checkpoint, and plans again after a crash.

    Attributes:
        ends: Ends of the micro-batches, as Spark's offset log has them.
        committed: How many of these are in the commit log.
    """

    def __init__(self, make: Callable[[], StreamReader]) -> None:
        self._make = make
        self.reader = make()
        self.ends: list[dict[str, Any]] = []
        self.committed = 0

    def start(self) -> dict[str, Any]:
        """Return the start of the micro-batch that is not committed yet."""
        return self.ends[self.committed - 1] if self.committed else self._initial()

    def plan(self) -> bool:
        """Log the end of the next micro-batch, if there is to be one."""
        start = self.start()
        if isinstance(self.reader, LimitedStreamReader):
            end = self.reader.latestOffset(start, self.reader.getDefaultReadLimit())
        else:
            assert isinstance(self.reader, UnlimitedStreamReader)
            end = self.reader.latestOffset()
        if json.dumps(end) == json.dumps(start):
            return False
        self.ends.append(json.loads(json.dumps(end)))
        return True

    def run(self) -> list[int]:
        """Read the micro-batch that was logged last, and commit it."""
        start = self.start()
        ranges = travelled(self.reader.partitions(start, self.ends[-1]))
        found = [row for one in ranges for row in numbers(travelled(self._make()).read(one))]
        self.committed = len(self.ends)
        return sorted(found)

    def batch(self) -> list[int] | None:
        """Read the next micro-batch; None if there is none."""
        return self.run() if self.plan() else None

    def rest(self) -> list[list[int]]:
        """Read all micro-batches that there are now."""
        found = []
        while (rows := self.batch()) is not None:
            found.append(rows)
        return found

    def crash(self) -> None:
        """Go on from the checkpoint, with a source that knows nothing of what was."""
        self.reader.stop()
        self.reader = self._make()

    def _initial(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(json.dumps(self.reader.initialOffset()))
        return found


def numbers(batches: Iterator[Any]) -> list[int]:
    return [int(value) for batch in batches for value in batch.column("value").to_pylist()]


def parsed(desk: Desk, options: Options) -> SourceOptions:
    servers = {"kafka.bootstrap.servers": desk.bootstrap}
    return SourceOptions.parse({**servers, **options}, streaming=True)


Stream = Callable[[Options], Query]


@pytest.fixture
def stream(desk: Desk) -> Iterator[Stream]:
    """Queries as Spark 4.2 runs them."""
    yield from queries(desk, LimitedStreamReader)


@pytest.fixture
def old_stream(desk: Desk) -> Iterator[Stream]:
    """Queries as Spark 4.0 and 4.1 run them."""
    yield from queries(desk, UnlimitedStreamReader)


def queries(desk: Desk, kind: type[StreamReader]) -> Iterator[Stream]:
    made: list[Query] = []

    def make(options: Options) -> Query:
        made.append(Query(lambda: kind(parsed(desk, options))))
        return made[-1]

    yield make
    for query in made:
        query.reader.stop()


EARLIEST = {"startingOffsets": "earliest"}


# --- starting


def test_earliest_reads_what_is_there_and_what_comes(desk: Desk, stream: Stream) -> None:
    topic = desk.topic(2)
    desk.fill(topic, 5)
    query = stream({"subscribe": topic, **EARLIEST})
    assert query.rest() == [[0, 1, 2, 3, 4]]
    desk.fill(topic, 2, partition=1, start=5)
    assert query.rest() == [[5, 6]]
    assert query.ends[-1] == {topic: {"0": 5, "1": 2}}


@pytest.mark.parametrize("kind", [LimitedStreamReader, UnlimitedStreamReader])
def test_latest_is_written_down_before_anything_is_read(
    desk: Desk, kind: type[StreamReader]
) -> None:
    topic = desk.topic()
    desk.fill(topic, 5)
    query = Query(lambda: kind(parsed(desk, {"subscribe": topic})))
    assert query.plan()
    desk.fill(topic, 10, start=5)  # came while the query was down
    query.crash()
    assert query.run() == []
    assert query.rest() == [list(range(5, 15))]
    query.reader.stop()


def test_latest_of_some_partitions_starts_the_others_where_they_were_named(
    desk: Desk, stream: Stream, old_stream: Stream
) -> None:
    topic = desk.topic(3)
    for partition in range(3):
        desk.fill(topic, 10, partition, partition * 10)
    options = {
        "subscribe": topic,
        "startingOffsets": json.dumps({topic: {"0": -1, "1": -2, "2": 7}}),
    }
    for query in (stream(options), old_stream(options)):
        assert query.rest() == [[], [*range(10, 20), 27, 28, 29]]


def test_offsets_must_name_the_partitions_that_there_are(desk: Desk, stream: Stream) -> None:
    topic = desk.topic(2)
    for offsets, words in (
        ({"0": 0}, f"without {topic}-1"),
        ({"0": 0, "1": 0, "2": 0}, f"with the unknown {topic}-2"),
        ({"0": 0, "1": 9}, f"got 9 for {topic}-1, expected at most 0"),
    ):
        query = stream({"subscribe": topic, "startingOffsets": json.dumps({topic: offsets})})
        with pytest.raises(ConfigError) as caught:
            query.batch()
        assert words in str(caught.value)


def test_times(desk: Desk, stream: Stream) -> None:
    topic = desk.topic(2)
    for number in range(4):
        desk.producer().send(topic, b"%d" % number, partition=0, timestamp_ms=1000 + number).result(
            20
        )
    late = {"subscribe": topic, "startingTimestamp": "1002"}
    with pytest.raises(ConfigError, match="startingOffsetsByTimestampStrategy=latest"):
        stream(late).batch()
    query = stream({**late, "startingOffsetsByTimestampStrategy": "latest"})
    assert query.rest() == [[], [2, 3]]
    each = json.dumps({topic: {"0": 1003, "1": 0}})
    query = stream({"subscribe": topic, "startingOffsetsByTimestamp": each})
    with pytest.raises(ConfigError, match=f"got 0 for {topic}-1"):
        query.batch()


def test_what_does_not_exist_is_refused(desk: Desk, stream: Stream) -> None:
    topic = desk.topic()
    for options in (
        {"subscribe": f"{topic},nowhere"},
        {"assign": json.dumps({topic: [0, 3]})},
    ):
        with pytest.raises(UnknownTopicOrPartitionError, match="does not exist"):
            stream(options).batch()


# --- what changes while a query lives


def test_new_partitions_and_topics_start_at_their_beginnings(desk: Desk, stream: Stream) -> None:
    topic = desk.topic(1, "grow-a")
    query = stream({"subscribePattern": "grow-."})
    assert query.rest() == [[]]
    desk.admin().create_partitions({topic: 2})
    desk.fill(topic, 3, partition=1)
    desk.fill(desk.topic(1, "grow-b"), 2, start=3)
    assert query.rest() == [[0, 1, 2, 3, 4]]
    query.crash()
    assert query.rest() == []


def test_a_pattern_may_match_nothing_at_first(desk: Desk, stream: Stream) -> None:
    query = stream({"subscribePattern": "late-topic", **EARLIEST})
    assert query.rest() == []
    desk.fill(desk.topic(1, "late-topic"), 2)
    assert query.rest() == [[0, 1]]


def test_assigned_partitions_only(desk: Desk, stream: Stream) -> None:
    topic = desk.topic(2)
    desk.fill(topic, 2)
    desk.fill(topic, 2, partition=1, start=10)
    assert stream({"assign": json.dumps({topic: [1]}), **EARLIEST}).rest() == [[10, 11]]


def test_a_planned_micro_batch_is_read_again_as_it_was(desk: Desk, stream: Stream) -> None:
    topic = desk.topic()
    desk.fill(topic, 10)
    query = stream({"subscribe": topic, **EARLIEST, "maxOffsetsPerTrigger": "4"})
    assert query.batch() == [0, 1, 2, 3]
    query.plan()
    query.crash()
    desk.fill(topic, 10, start=10)
    assert query.run() == [4, 5, 6, 7]


# --- limits


def test_a_micro_batch_keeps_its_limit(desk: Desk, stream: Stream) -> None:
    topic = desk.topic(3)
    for partition in range(3):
        desk.fill(topic, 10 * partition + 1, partition, 100 * partition)
    query = stream({"subscribe": topic, **EARLIEST, "maxOffsetsPerTrigger": "7"})
    found = query.rest()
    assert [len(rows) for rows in found] == [7, 7, 7, 7, 5]
    assert len({row for rows in found for row in rows}) == 33


def test_bytes_are_judged_by_a_sample_of_what_comes_next(desk: Desk, stream: Stream) -> None:
    topic = desk.topic(2)
    for size, count in ((100, 2000), (1000, 200)):
        for partition in range(2):
            values = [b"1" * size] * count
            desk.producer().send_many(topic, values, partition=partition).result(20)
    query = stream({"subscribe": topic, **EARLIEST, "maxBytesPerTrigger": "50000"})
    sizes = [len(rows) for rows in query.rest()]
    assert sum(sizes) == 4400
    assert all(350 <= size <= 500 for size in sizes[:5])
    assert all(40 <= size <= 50 for size in sizes[-5:-1])


def test_both_limits_hold(desk: Desk, stream: Stream) -> None:
    topic = desk.topic()
    desk.producer().send_many(topic, [b"1" * 1000] * 100, partition=0).result(20)
    options = {"subscribe": topic, **EARLIEST, "maxBytesPerTrigger": "20200"}
    few = stream({**options, "maxOffsetsPerTrigger": "7"}).batch()
    assert len(few or ()) == 7
    many = stream({**options, "maxOffsetsPerTrigger": "70"}).batch()
    assert 15 <= len(many or ()) <= 20


def test_a_micro_batch_waits_for_enough(desk: Desk, stream: Stream) -> None:
    topic = desk.topic()
    desk.fill(topic, 2)
    options = {"subscribe": topic, **EARLIEST, "minOffsetsPerTrigger": "5"}
    query = stream(options)
    assert query.rest() == [[0, 1]]  # the first one waits for nothing
    desk.fill(topic, 4, start=2)
    assert query.batch() is None
    desk.fill(topic, 1, start=6)
    assert query.rest() == [[2, 3, 4, 5, 6]]
    impatient = stream({**options, "maxTriggerDelay": "0"})
    assert impatient.batch() is not None
    desk.fill(topic, 1, start=7)
    assert impatient.batch() == [7]


def test_available_now_ends_where_the_partitions_ended(desk: Desk, stream: Stream) -> None:
    topic = desk.topic()
    desk.fill(topic, 5)
    options = {**EARLIEST, "maxOffsetsPerTrigger": "2", "minOffsetsPerTrigger": "100"}
    query = stream({"subscribe": topic, **options})
    reader = query.reader
    assert isinstance(reader, LimitedStreamReader)
    reader.prepareForTriggerAvailableNow()
    desk.fill(topic, 5, start=5)
    desk.admin().create_partitions({topic: 2})
    desk.fill(topic, 5, partition=1, start=10)
    assert query.rest() == [[0, 1], [2, 3], [4]]
    assert reader.reportLatestOffset() == {topic: {"0": 10, "1": 5}}


def test_available_now_after_a_crash_before_the_start_was_known(desk: Desk, stream: Stream) -> None:
    topic = desk.topic()
    desk.fill(topic, 5)
    query = stream({"subscribe": topic})
    reader = query.reader
    assert isinstance(reader, LimitedStreamReader)
    reader.prepareForTriggerAvailableNow()
    desk.fill(topic, 5, start=5)
    assert query.rest() == [[]]
    assert query.ends == [{topic: {"0": 10}}]


def test_limits_need_a_spark_that_asks_for_them(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kclient.spark.spark_version.spark_version", lambda: "4.1.4")
    for name in ("maxOffsetsPerTrigger", "maxBytesPerTrigger", "minOffsetsPerTrigger"):
        with pytest.raises(UnsupportedSparkVersionError) as caught:
            stream_readers.make_stream_reader(parsed(desk, {"subscribe": "t", name: "5"}))
        assert str(caught.value).startswith(f"{name}: got Spark 4.1.4, expected 4.2 or newer; ")
    made = stream_readers.make_stream_reader(parsed(desk, {"subscribe": "t"}))
    assert isinstance(made, UnlimitedStreamReader)


# --- data loss


def cut(cluster: EmbeddedCluster, topic: str, offset: int, partition: int = 0) -> None:
    """Remove what lies before an offset, as retention does."""
    replicas = cluster.broker.services.replica_manager
    replicas.partition(TopicPartition(topic, partition)).delete_records(offset)


def test_retention_fails_a_stream_before_the_loss_is_in_its_checkpoint(
    desk: Desk, stream: Stream, spark_cluster: EmbeddedCluster
) -> None:
    topic = desk.topic()
    desk.fill(topic, 10)
    query = stream({"subscribe": topic, **EARLIEST, "maxOffsetsPerTrigger": "2"})
    assert query.batch() == [0, 1]
    cut(spark_cluster, topic, 7)
    with pytest.raises(DataLossError) as caught:
        query.plan()
    assert caught.value.lost == {place(topic): 5}
    assert len(query.ends) == 1


def test_a_planned_micro_batch_that_lost_records_fails_too(
    desk: Desk, stream: Stream, spark_cluster: EmbeddedCluster
) -> None:
    topic = desk.topic()
    desk.fill(topic, 10)
    query = stream({"subscribe": topic, **EARLIEST})
    query.plan()
    query.crash()
    query.committed = 0
    query.ends.insert(0, {topic: {"0": 2}})
    query.committed = 1
    cut(spark_cluster, topic, 5)
    with pytest.raises(DataLossError) as caught:
        query.run()
    assert caught.value.lost == {place(topic): 3}


def test_without_failing_a_stream_goes_on_and_counts(
    desk: Desk,
    stream: Stream,
    spark_cluster: EmbeddedCluster,
    caplog: pytest.LogCaptureFixture,
) -> None:
    topic = desk.topic()
    desk.fill(topic, 10)
    options = {**EARLIEST, "maxOffsetsPerTrigger": "2", "failOnDataLoss": "false"}
    query = stream({"subscribe": topic, **options})
    assert query.batch() == [0, 1]
    cut(spark_cluster, topic, 7)
    with caplog.at_level(logging.WARNING, "kclient.spark"):
        assert query.rest() == [[7, 8], [9]]
    assert caplog.text.count("5 offsets lost") == 1


def test_a_deleted_topic(desk: Desk, stream: Stream, caplog: pytest.LogCaptureFixture) -> None:
    names = [desk.topic(1, name) for name in ("gone-a", "gone-b")]
    for name in names:
        desk.fill(name, 4)
    options = {"subscribePattern": "gone-.", **EARLIEST, "maxOffsetsPerTrigger": "4"}
    strict, loose = stream(options), stream({**options, "failOnDataLoss": "false"})
    assert strict.batch() == loose.batch() == [0, 0, 1, 1]
    desk.admin().delete_topics(["gone-a"])
    with pytest.raises(DataLossError) as caught:
        strict.plan()
    assert caught.value.lost == {place("gone-a"): 2}
    with caplog.at_level(logging.WARNING, "kclient.spark"):
        assert loose.rest() == [[2, 3]]
    assert caplog.text.count("gone-a-0: it is gone") == 1
    assert loose.ends[-1] == {"gone-b": {"0": 4}}


def test_a_topic_that_was_created_anew(desk: Desk, stream: Stream) -> None:
    topic = desk.topic()
    desk.fill(topic, 4)
    options = {"subscribe": topic, **EARLIEST}
    strict, loose = stream(options), stream({**options, "failOnDataLoss": "false"})
    restarted = stream(options)
    assert strict.batch() == loose.batch() == restarted.batch() == [0, 1, 2, 3]
    desk.admin().delete_topics([topic])
    desk.topic(1, topic)
    desk.fill(topic, 6, start=50)
    with pytest.raises(DataLossError, match="deleted and created anew"):
        strict.plan()
    assert loose.rest() == [list(range(50, 56))]


def test_a_topic_that_was_created_anew_and_is_shorter(desk: Desk, stream: Stream) -> None:
    topic = desk.topic()
    desk.fill(topic, 4)
    options = {"subscribe": topic, **EARLIEST}
    strict, loose = stream(options), stream({**options, "failOnDataLoss": "false"})
    assert strict.batch() == loose.batch() == [0, 1, 2, 3]
    desk.admin().delete_topics([topic])
    desk.topic(1, topic)
    desk.fill(topic, 2, start=50)
    for query in (strict, loose):
        query.crash()  # it knows nothing of topic ids now
    with pytest.raises(DataLossError, match="deleted and created anew"):
        strict.plan()
    assert loose.rest() == [[50, 51]]


def test_a_new_partition_that_lost_its_beginning(
    desk: Desk, stream: Stream, spark_cluster: EmbeddedCluster
) -> None:
    topic = desk.topic()
    desk.fill(topic, 1)
    query = stream({"subscribe": topic, **EARLIEST})
    assert query.rest() == [[0]]
    desk.admin().create_partitions({topic: 2})
    desk.fill(topic, 5, partition=1)
    cut(spark_cluster, topic, 3, partition=1)
    with pytest.raises(DataLossError) as caught:
        query.plan()
    assert caught.value.lost == {place(topic, 1): 3}


def test_old_sparks_find_losses_when_a_micro_batch_is_planned(
    desk: Desk, old_stream: Stream, spark_cluster: EmbeddedCluster
) -> None:
    topic = desk.topic()
    desk.fill(topic, 4)
    query = old_stream({"subscribe": topic, **EARLIEST})
    assert query.batch() == [0, 1, 2, 3]
    desk.fill(topic, 4, start=4)
    cut(spark_cluster, topic, 6)
    with pytest.raises(DataLossError) as caught:
        query.batch()
    assert caught.value.lost == {place(topic): 2}


# --- commits for watching the lag


def test_commits_under_a_group_are_for_watching_only(desk: Desk, stream: Stream) -> None:
    topic, group = desk.topic(2), desk.group()
    desk.fill(topic, 4)
    query = stream({"subscribe": topic, **EARLIEST, "groupId": group})
    query.batch()
    query.reader.commit(query.ends[-1])
    committed = desk.admin().list_consumer_group_offsets(group)
    assert {one: found.offset for one, found in committed.items()} == {
        place(topic, 0): 4,
        place(topic, 1): 0,
    }


def test_a_commit_that_fails_does_not_end_the_query(
    desk: Desk, stream: Stream, caplog: pytest.LogCaptureFixture
) -> None:
    topic, group = desk.topic(), desk.group()
    member = desk.consumer(group)
    member.subscribe([topic])
    member.poll(0.5)
    query = stream({"subscribe": topic, **EARLIEST, "groupId": group})
    query.batch()
    with caplog.at_level(logging.WARNING, "kclient.spark"):
        query.reader.commit({topic: {"0": 0}})
    assert "commit for watching the lag failed" in caplog.text
