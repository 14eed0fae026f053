"""Loading of the metadata log, and its publishers."""

from collections.abc import Iterable

import pytest

from kclient.broker.metadata.metadata_batch_loader import Fault
from kclient.broker.metadata.metadata_image import MetadataImage
from kclient.broker.metadata.metadata_loader import (
    MetadataLoader,
    MetadataSnapshot,
    load_image,
)
from kclient.broker.raft.raft_types import (
    NO_LEADER,
    CommittedBatch,
    LeaderAndEpoch,
    OffsetAndEpoch,
)
from kclient.protocol.messages.metadata_records import (
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    MetadataRecord,
    NoOpRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from tests.support.virtual.metadata_batches import (
    RecordingPublisher,
    batch_of,
    control_batch,
)

A = TopicRecord(name="a", topic_id=b"\1" * 16)
B = TopicRecord(name="b", topic_id=b"\2" * 16)
SETTING = ConfigRecord(resource_type=2, resource_name="a", name="x", value="1")


class Snapshot:
    """Snapshot of the given records."""

    def __init__(self, offset: int, epoch: int, *records: MetadataRecord) -> None:
        self.snapshot_id = OffsetAndEpoch(offset, epoch)
        self.last_contained_log_timestamp = 55
        self._records = records

    def batches(self) -> Iterable[CommittedBatch]:
        for number, record in enumerate(self._records):
            yield batch_of(number, record)


class Bench:
    """Loader with a high watermark, faults, and one publisher."""

    def __init__(self) -> None:
        self.high_watermark: int | None = None
        self.faults: list[Fault] = []
        self.loader = MetadataLoader(lambda: self.high_watermark, self.faults.append)
        self.publisher = RecordingPublisher()
        self.loader.add_publisher(self.publisher)


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.fixture
def ready(bench: Bench) -> Bench:
    """Bench whose publisher has received the image with topic a, at offset 0."""
    bench.high_watermark = 1
    bench.loader.handle_commit([batch_of(0, A)])
    assert bench.publisher.offsets == [0]
    return bench


def test_first_image_is_at_the_high_watermark(bench: Bench) -> None:
    bench.loader.handle_commit([batch_of(0, A)])
    assert bench.loader.poll()
    assert bench.publisher.updates == []
    bench.high_watermark = 4
    assert bench.loader.poll()
    bench.loader.handle_commit([batch_of(1, B, NoOpRecord())])
    assert bench.publisher.updates == []
    bench.loader.handle_commit([batch_of(3, SETTING)])
    ((delta, image, manifest),) = bench.publisher.updates
    assert (image.offset, manifest.is_snapshot) == (3, True)
    assert delta.image == MetadataImage()
    assert set(delta.created_topics) == {"a", "b"}
    assert list(delta.changed_configs) == [(2, "a")]
    assert bench.publisher.leaders == [NO_LEADER]
    assert not bench.loader.poll()


def test_topics_removed_before_the_first_publication_are_kept(bench: Bench) -> None:
    bench.loader.handle_commit(
        [batch_of(0, A), batch_of(1, RemoveTopicRecord(topic_id=A.topic_id))]
    )
    bench.high_watermark = 3
    bench.loader.handle_commit([batch_of(2, B)])
    assert bench.loader.removed_topics == {A.topic_id}
    bench.loader.handle_commit([batch_of(3, RemoveTopicRecord(topic_id=B.topic_id))])
    assert bench.loader.removed_topics == {A.topic_id}


def test_high_watermark_may_become_known_later(bench: Bench) -> None:
    bench.loader.handle_commit([batch_of(0, A)])
    bench.high_watermark = 1
    assert not bench.loader.poll()
    assert bench.publisher.offsets == [0]


def test_control_batches_alone_are_no_metadata(bench: Bench) -> None:
    """A broker would otherwise start with an empty image of a quorum that just began."""
    bench.high_watermark = 1
    bench.loader.handle_commit([control_batch(0)])
    assert bench.publisher.updates == []
    bench.high_watermark = 2
    bench.loader.handle_commit([batch_of(1, NoOpRecord())])
    assert bench.publisher.offsets == [1]


def test_no_publisher_starts_within_a_transaction(bench: Bench) -> None:
    bench.high_watermark = 1
    bench.loader.handle_commit([batch_of(0, A, BeginTransactionRecord(), B)])
    assert bench.publisher.updates == []
    bench.loader.handle_commit([batch_of(3, EndTransactionRecord())])
    assert bench.publisher.offsets == [3]
    assert set(bench.publisher.images[0].topics) == {"a", "b"}


def test_later_images_come_with_their_changes(ready: Bench) -> None:
    ready.high_watermark = None
    ready.loader.handle_commit([batch_of(1, B)])
    delta, image, manifest = ready.publisher.updates[-1]
    assert list(delta.created_topics) == ["b"]
    assert delta.image is ready.publisher.images[0]
    assert image is ready.loader.image
    assert not manifest.is_snapshot


def test_publisher_that_is_added_later_receives_the_whole_image(ready: Bench) -> None:
    later = RecordingPublisher("later")
    ready.loader.add_publisher(later)
    assert list(later.updates[0][0].created_topics) == ["a"]
    ready.loader.handle_commit([batch_of(1, B)])
    assert later.offsets == [0, 1]
    ready.loader.remove_publisher(later)
    ready.loader.handle_commit([batch_of(2, NoOpRecord())])
    assert later.offsets == [0, 1]
    assert ready.publisher.offsets == [0, 1, 2]


def test_publishers_are_called_in_order(ready: Bench) -> None:
    calls: list[str] = []

    class Named(RecordingPublisher):
        def on_metadata_update(self, *_update: object) -> None:
            calls.append(self.name)

    for name in ("first", "second"):
        ready.loader.add_publisher(Named(name))
    ready.loader.handle_commit([batch_of(1, B)])
    assert calls == ["first", "second", "first", "second"]


def test_snapshot_is_published_as_a_difference(ready: Bench) -> None:
    snapshot: MetadataSnapshot = Snapshot(8, 3, B, SETTING)
    ready.loader.handle_load_snapshot(snapshot)
    delta, image, manifest = ready.publisher.updates[-1]
    assert (image.offset, image.epoch, image.timestamp_ms) == (7, 3, 55)
    assert list(image.topics) == list(delta.created_topics) == ["b"]
    assert [topic.name for topic in delta.deleted_topics] == ["a"]
    assert delta.image is ready.publisher.images[0]
    assert manifest.is_snapshot
    ready.loader.handle_commit([batch_of(8, A)])
    assert set(ready.publisher.images[-1].topics) == {"a", "b"}


def test_image_of_a_snapshot() -> None:
    faults: list[Fault] = []
    unknown = RemoveTopicRecord(topic_id=b"\7" * 16)
    image = load_image(Snapshot(8, 3, B, unknown, SETTING), faults.append)
    assert (image.offset, image.epoch, image.timestamp_ms) == (7, 3, 55)
    assert image.topic_config("a") == {"x": "1"}
    (fault,) = faults
    assert "snapshot" in fault.message


def test_snapshot_counts_for_the_first_image(bench: Bench) -> None:
    bench.high_watermark = 8
    bench.loader.handle_load_snapshot(Snapshot(8, 3, B))
    assert bench.publisher.offsets == [7]
    assert len(bench.publisher.updates) == 1


def test_failing_publisher_does_not_keep_the_others_from_the_change(ready: Bench) -> None:
    later = RecordingPublisher("later")
    ready.loader.add_publisher(later)
    ready.publisher.error = RuntimeError("disk")
    ready.loader.handle_commit([batch_of(1, B)])
    assert later.offsets == [0, 1]
    (fault,) = ready.faults
    assert fault.message == "metadata: recorder could not apply offset 1"
    assert not fault.is_fatal
    assert ready.loader.apply_error_count == 1


def test_failure_of_the_first_publication_is_fatal(ready: Bench) -> None:
    later = RecordingPublisher("later")
    later.error = RuntimeError("disk")
    ready.loader.add_publisher(later)
    assert [fault.is_fatal for fault in ready.faults] == [True]


def test_load_errors_are_counted(ready: Bench) -> None:
    unknown = RemoveTopicRecord(topic_id=b"\7" * 16)
    ready.loader.handle_commit([batch_of(1, unknown, B)])
    ready.loader.handle_load_snapshot(Snapshot(8, 3, unknown, B))
    assert ready.loader.load_error_count == len(ready.faults) == 2
    assert list(ready.loader.image.topics) == ["b"]


def test_fault_handler_may_stop_the_node(bench: Bench) -> None:
    def stop(fault: Fault) -> None:
        raise fault.error

    loader = MetadataLoader(lambda: 1, stop)
    publisher = RecordingPublisher()
    loader.add_publisher(publisher)
    with pytest.raises(Exception, match="is unknown"):
        loader.handle_commit([batch_of(0, RemoveTopicRecord(topic_id=b"\7" * 16))])
    assert publisher.updates == []


def test_leader_is_reported(ready: Bench) -> None:
    leader = LeaderAndEpoch(3, 5)
    ready.loader.handle_leader_change(leader)
    assert ready.publisher.leaders == [NO_LEADER, leader]
    later = RecordingPublisher("later")
    ready.loader.add_publisher(later)
    assert later.leaders == [leader]
    assert ready.loader.leader is leader


def test_nothing_is_published_after_the_start_of_the_shutdown(ready: Bench) -> None:
    ready.loader.begin_shutdown()
    ready.loader.handle_commit([batch_of(1, B)])
    assert ready.publisher.offsets == [0]
