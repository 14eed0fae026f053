"""Times at which snapshots are written."""

from collections.abc import Sequence

import pytest

from kclient.broker.metadata.image_records import encoded_records
from kclient.broker.metadata.metadata_batch_loader import Manifest
from kclient.broker.metadata.metadata_delta import MetadataDelta
from kclient.broker.metadata.metadata_image import MetadataImage
from kclient.broker.metadata.metadata_loader import MetadataLoader
from kclient.broker.metadata.snapshot_generator import (
    DEFAULT_MAX_BYTES,
    ImageWriter,
    SnapshotGenerator,
)
from kclient.broker.raft.raft_types import NO_LEADER
from kclient.broker.raft.snapshots import SnapshotWriter
from kclient.common.errors import KafkaError
from kclient.protocol.messages.metadata_records import BeginTransactionRecord, NoOpRecord
from tests.support.disks.log_bench import ManualClock
from tests.support.virtual.metadata_batches import batch_of


class Bench:
    """Generator with the offsets of the images it offered."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.is_complete = True
        self.offsets: list[int] = []
        self.generator = SnapshotGenerator(
            self.clock,
            lambda image: self.offsets.append(image.offset),
            lambda: self.is_complete,
            max_bytes=1000,
            max_interval_ms=60_000,
        )

    def update(
        self, offset: int, size: int = 0, *, is_snapshot: bool = False, aligned: bool = True
    ) -> None:
        manifest = Manifest(is_snapshot, size, aligned)
        image = MetadataImage(offset=offset)
        self.generator.on_metadata_update(MetadataDelta(image), image, manifest)


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_snapshot_is_due_after_enough_bytes(bench: Bench) -> None:
    bench.update(1, 999)
    assert bench.offsets == []
    bench.update(2, 1)
    assert bench.offsets == [2]
    bench.update(3, 999)
    assert bench.offsets == [2]


def test_snapshot_is_due_after_enough_time(bench: Bench) -> None:
    bench.clock.elapsed_ms += 59_999
    bench.update(1, 10)
    assert bench.offsets == []
    bench.clock.elapsed_ms += 1
    bench.update(2, 10)
    assert bench.offsets == [2]
    bench.clock.elapsed_ms += 59_999
    bench.update(3, 10)
    assert bench.offsets == [2]


def test_only_images_at_the_end_of_a_batch(bench: Bench) -> None:
    bench.update(1, 2000, aligned=False)
    assert bench.offsets == []
    bench.update(2, 1)
    assert bench.offsets == [2]


def test_no_snapshot_after_a_load_error(bench: Bench) -> None:
    bench.is_complete = False
    bench.update(1, 2000)
    assert bench.offsets == []


def test_loaded_snapshot_resets_both(bench: Bench) -> None:
    bench.update(1, 999)
    bench.clock.elapsed_ms += 59_000
    bench.update(2, is_snapshot=True)
    bench.update(3, 999)
    bench.clock.elapsed_ms += 59_000
    bench.update(4, 0)
    assert bench.offsets == []


def test_loader_offers_no_image_of_an_open_transaction() -> None:
    bench = Bench()
    loader = MetadataLoader(lambda: 1, lambda _fault: None)
    loader.add_publisher(bench.generator)
    bench.generator.on_controller_change(NO_LEADER)
    large = batch_of(1, NoOpRecord(), BeginTransactionRecord())._replace(size_in_bytes=5000)
    loader.handle_commit([batch_of(0, NoOpRecord())])
    loader.handle_commit([large])
    loader.handle_commit([batch_of(3, NoOpRecord())])
    assert bench.offsets == []
    assert DEFAULT_MAX_BYTES == 20 * 1024 * 1024


class Writer(SnapshotWriter):
    """Writer that keeps the values, and can fail."""

    def __init__(self, error: KafkaError | None = None) -> None:
        self.values: list[bytes] = []
        self.calls: list[str] = []
        self._error = error

    def append(self, records: Sequence[bytes]) -> None:
        if self._error is not None:
            raise self._error
        self.values += records

    def freeze(self) -> int:
        self.calls.append("freeze")
        return 0

    def close(self) -> None:
        self.calls.append("close")


def test_image_is_written_and_completed() -> None:
    settings = {(4, str(number)): {"x": "1"} for number in range(2500)}
    image = MetadataImage(features={"metadata.version": 25}, configs=settings)
    writer = Writer()
    steps = ImageWriter(writer, image)
    assert not steps.step()
    assert 0 < len(writer.values) < 2501
    while not steps.step():
        assert writer.calls == []
    assert writer.values == list(encoded_records(image))
    assert writer.calls == ["freeze"]
    steps.close()
    assert writer.calls == ["freeze", "close"]


def test_incomplete_snapshot_is_discarded() -> None:
    writer = Writer(KafkaError("disk"))
    steps = ImageWriter(writer, MetadataImage(features={"metadata.version": 25}))
    with pytest.raises(KafkaError, match="disk"):
        steps.step()
    assert writer.calls == ["close"]
