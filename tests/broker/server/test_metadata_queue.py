"""Publications in a thread of their own."""

from kclient.broker.metadata.metadata_loader import MetadataLoader
from kclient.broker.raft.raft_types import CommittedBatch
from kclient.broker.server.metadata_queue import MetadataQueue
from kclient.common.system_tasks import SystemTasks
from kclient.protocol.messages.metadata_records import NoOpRecord
from tests.support.checks.waiting import wait_until
from tests.support.virtual.metadata_batches import RecordingPublisher

BATCH = CommittedBatch(0, 0, 1, 0, 0, (NoOpRecord().encode_framed(0),))


class Bench:
    """Queue of a loader with one publisher."""

    def __init__(self) -> None:
        self.high_watermark: int | None = 1
        self.failures: list[BaseException] = []
        self.publisher = RecordingPublisher()
        self.loader = MetadataLoader(lambda: self.high_watermark, lambda _fault: None)
        self.loader.add_publisher(self.publisher)
        self.queue = MetadataQueue(self.loader, SystemTasks())


def test_calls_run_at_once_without_a_thread() -> None:
    bench = Bench()
    bench.queue.handle_commit([BATCH])
    assert bench.publisher.offsets == [0]


def test_publisher_that_waits_is_polled_by_the_thread() -> None:
    bench = Bench()
    bench.high_watermark = 2
    bench.queue.events.start("publications", bench.failures.append)
    bench.queue.handle_commit([BATCH])
    bench.high_watermark = 1
    wait_until(lambda: bench.publisher.offsets == [0], "the image is published")
    bench.queue.events.shutdown(10)
    assert bench.failures == []
