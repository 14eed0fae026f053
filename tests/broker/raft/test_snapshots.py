"""Snapshots of the metadata log."""

from pathlib import Path

import pytest

from kclient.broker.raft.control_batches import kraft_version, parse_voters, voters_record
from kclient.broker.raft.raft_types import OffsetAndEpoch
from kclient.broker.raft.snapshots import (
    SnapshotFiles,
    SnapshotWriter,
    parse_snapshot_name,
    snapshot_name,
    write_bootstrap_snapshot,
)
from kclient.common.broker_errors import CorruptRecordError
from kclient.common.system_files import SystemFiles
from kclient.record import ControlRecordType, read_batches
from tests.support.quorum.bench import voter_set

ID = OffsetAndEpoch(42, 3)
NAME = "00000000000000000042-0000000003.checkpoint"


@pytest.fixture
def store(tmp_path: Path) -> SnapshotFiles:
    return SnapshotFiles(SystemFiles(), tmp_path)


def write(store: SnapshotFiles, *records: bytes) -> None:
    control = [kraft_version(1), voters_record(voter_set(1))]
    writer = SnapshotWriter(store.write(ID), 1_000, control)
    writer.append(records)
    writer.freeze()


def test_names() -> None:
    assert snapshot_name(ID) == NAME
    assert parse_snapshot_name(NAME) == ID
    assert parse_snapshot_name(NAME + ".part") is None
    assert parse_snapshot_name("00000000000000000042.log") is None


def test_header_records_and_footer(store: SnapshotFiles, tmp_path: Path) -> None:
    write(store, b"a", b"b")
    reader = store.reader(ID)
    assert reader.last_contained_log_timestamp == 1_000
    kinds = [kind for kind, _ in reader.control_records()]
    assert kinds == [
        ControlRecordType.SNAPSHOT_HEADER,
        ControlRecordType.KRAFT_VERSION,
        ControlRecordType.KRAFT_VOTERS,
    ]
    assert [batch.records for batch in reader.batches()] == [(b"a", b"b")]
    raw = list(read_batches((tmp_path / NAME).read_bytes()))
    assert [(each.base_offset, each.partition_leader_epoch) for each in raw] == [
        (0, 3),
        (3, 3),
        (5, 3),
    ]


def test_large_snapshot_has_many_batches(store: SnapshotFiles) -> None:
    write(store, *(bytes(200_000) for _ in range(20)))
    batches = list(store.reader(ID).batches())
    assert len(batches) > 2
    assert sum(len(batch.records) for batch in batches) == 20


def test_incomplete_and_deleted_files_are_removed_at_start(
    store: SnapshotFiles, tmp_path: Path
) -> None:
    write(store, b"a")
    store.write(OffsetAndEpoch(50, 3)).append(b"x")
    (tmp_path / f"{NAME}.deleted").write_bytes(b"")
    other = SnapshotFiles(SystemFiles(), tmp_path)
    other.load()
    assert other.ids == [ID]
    assert [path.name for path in tmp_path.iterdir()] == [NAME]


def test_discarded_writer_leaves_nothing(store: SnapshotFiles, tmp_path: Path) -> None:
    raw = store.write(ID)
    raw.append(b"abc")
    raw.close()
    raw.freeze()
    assert list(tmp_path.iterdir()) == []
    assert ID not in store


def test_deletion_renames_first(store: SnapshotFiles, tmp_path: Path) -> None:
    write(store, b"a")
    path = store.mark_deleted(ID)
    assert [each.name for each in tmp_path.iterdir()] == [f"{NAME}.deleted"]
    store.remove(path)
    assert list(tmp_path.iterdir()) == []


def test_damage_is_found(store: SnapshotFiles, tmp_path: Path) -> None:
    write(store, b"some value")
    content = (tmp_path / NAME).read_bytes()
    for damaged in (content[:-75], content.replace(b"some", b"same")):
        (tmp_path / NAME).write_bytes(damaged)
        store.load()
        with pytest.raises(CorruptRecordError):
            list(store.reader(ID).batches())


def test_bootstrap_snapshot_has_the_voters(tmp_path: Path) -> None:
    write_bootstrap_snapshot(SystemFiles(), tmp_path, voter_set(1, 2), 1_000)
    store = SnapshotFiles(SystemFiles(), tmp_path)
    store.load()
    assert store.ids == [OffsetAndEpoch(0, 0)]
    assert [path.name for path in tmp_path.iterdir()] == [
        "00000000000000000000-0000000000.checkpoint"
    ]
    *_, (kind, value) = store.reader(store.ids[0]).control_records()
    assert kind == ControlRecordType.KRAFT_VOTERS
    assert parse_voters(value) == voter_set(1, 2)
