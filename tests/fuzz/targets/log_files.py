"""Files of a log: indexes, snapshots and checkpoints, also as printed by dump-log.

The first byte of an input selects the file; the rest is its content.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

from kclient.broker.log.checkpoint_file import (
    LeaderEpochCheckpointFile,
    OffsetCheckpointFile,
    PartitionMetadataFile,
)
from kclient.broker.log.dump_log import DumpOptions, LogDump
from kclient.broker.log.leader_epoch_file_cache import LeaderEpochFileCache
from kclient.broker.log.offset_index import OffsetIndex
from kclient.broker.log.producer_snapshot import decode_snapshot, encode_snapshot
from kclient.broker.log.time_index import TimeIndex
from kclient.broker.log.transaction_index import AbortedTxn, TransactionIndex
from kclient.broker.metadata.meta_properties import (
    MetaProperties,
    read_meta_properties,
    write_meta_properties,
)
from kclient.common.system_files import SystemFiles
from kclient.record import crc32c
from tests.fuzz.batch_mutation import mutate_batches, plain_batch
from tests.fuzz.mutation import spoil
from tests.fuzz.oracle import refusals
from tests.fuzz.target import MEBIBYTE, Target
from tests.fuzz.workspace import workspace
from tests.support.disks.log_bench import make_batch

_FILES = SystemFiles()
_BASE = 7
_STEM = f"{_BASE:020d}"
_TIMES = (-1, 0, 5, 1_700_000_000_000, 2**62)
_OFFSETS = (0, _BASE, _BASE + 1, 50, 2**40)
_DUMPS = (
    DumpOptions(print_data=True),
    DumpOptions(deep=True),
    DumpOptions(index_sanity_check=True),
    DumpOptions(verify_index_only=True),
)


class Kind(NamedTuple):
    """A file with its name, its readers and valid contents."""

    name: str
    read: Callable[[Path], None]
    content: Callable[[], bytes]


def run(data: bytes) -> None:
    """Write the file, and read it in each way."""
    if not data:
        return
    kind = _KINDS[data[0] % len(_KINDS)]
    directory = workspace("log_files")
    for old in directory.iterdir():
        old.unlink()
    (directory / f"{_STEM}.log").write_bytes(_log())
    path = directory / kind.name
    path.write_bytes(data[1:])
    with refusals():
        kind.read(path)
    if path.name.startswith(_STEM):
        path.write_bytes(data[1:])
        for options in _DUMPS:
            with refusals():
                assert list(LogDump(_FILES, path, options).lines())


def _read_offset_index(path: Path) -> None:
    index = OffsetIndex(_FILES, path, _BASE, 1 << 12)
    index.open()
    try:
        for offset in _OFFSETS:
            assert index.lookup(offset).offset <= max(offset, _BASE) or index.entries
        index.truncate_to(_BASE + 2)
        index.sanity_check()
        index.resize_for_append()
        index.append(max(index.last_offset, _BASE) + 1, 100)
    finally:
        index.close()


def _read_time_index(path: Path) -> None:
    index = TimeIndex(_FILES, path, _BASE, 1 << 12)
    index.open()
    try:
        for timestamp in _TIMES:
            index.lookup(timestamp)
        index.truncate_to(_BASE + 2)
        index.sanity_check()
        index.resize_for_append()
        index.maybe_append(2**61, 2**30, closing=True)
    finally:
        index.close()


def _read_transaction_index(path: Path) -> None:
    index = TransactionIndex(_FILES, path, _BASE)
    try:
        index.sanity_check()
        assert all(txn.last_offset >= _BASE for txn in index.aborted_txns())
        index.truncate_to(20)
        index.append(AbortedTxn(1, 20, 2**40, 21))
    finally:
        index.close()


def _read_snapshot(path: Path) -> None:
    entries = decode_snapshot(path.read_bytes())
    assert len(decode_snapshot(encode_snapshot(entries))) == len(entries)


def _read_epochs(path: Path) -> None:
    checkpoint = LeaderEpochCheckpointFile(_FILES, path.parent)
    cache = LeaderEpochFileCache(checkpoint)
    cache.load()
    for offset in _OFFSETS:
        cache.epoch_for_offset(offset)
        cache.end_offset_for(3, offset)
    cache.truncate_from_end(50)
    cache.truncate_from_start(3)
    cache.assign(max(cache.latest_epoch or 0, 0) + 1, 60)
    assert list(checkpoint.read()) == list(cache.entries)


def _read_offsets(path: Path) -> None:
    checkpoint = OffsetCheckpointFile(_FILES, path.parent, path.name)
    offsets = checkpoint.read()
    checkpoint.write(offsets)
    assert checkpoint.read() == offsets


def _read_partition_metadata(path: Path) -> None:
    file = PartitionMetadataFile(_FILES, path.parent)
    topic_id = file.read()
    file.write(topic_id)
    assert file.read() == topic_id


def _read_properties(path: Path) -> None:
    found = read_meta_properties(_FILES, path.parent)
    assert found is not None
    write_meta_properties(_FILES, path.parent, found)
    assert read_meta_properties(_FILES, path.parent) == found


def _read_nothing(_: Path) -> None:
    """Do nothing: only dump-log reads the file."""


def _log() -> bytes:
    return plain_batch(3, base_offset=_BASE) + plain_batch(2, base_offset=_BASE + 3)


def _written(write: Callable[[Path], None], name: str) -> bytes:
    directory = workspace("log_files")
    (directory / name).unlink(missing_ok=True)
    write(directory)
    return (directory / name).read_bytes()


def _snapshot() -> bytes:
    body = (2).to_bytes(4) + bytes(46) + bytes([0, 0, 0, 0, 0, 0, 0, 9]) + bytes(38)
    return (1).to_bytes(2) + crc32c(body).to_bytes(4) + body


_KINDS = (
    Kind(
        f"{_STEM}.index",
        _read_offset_index,
        lambda: b"".join(n.to_bytes(4) + (90 * n).to_bytes(4) for n in range(1, 6)),
    ),
    Kind(
        f"{_STEM}.timeindex",
        _read_time_index,
        lambda: b"".join((1000 + n).to_bytes(8) + n.to_bytes(4) for n in range(1, 6)),
    ),
    Kind(
        f"{_STEM}.txnindex",
        _read_transaction_index,
        lambda: b"".join(
            b"\0\0" + b"".join(v.to_bytes(8) for v in (1, n, n + 2, n)) for n in (10, 20, 30)
        ),
    ),
    Kind(f"{_STEM}.snapshot", _read_snapshot, _snapshot),
    Kind("leader-epoch-checkpoint", _read_epochs, lambda: b"0\n3\n0 0\n2 10\n5 40\n"),
    Kind(
        "recovery-point-offset-checkpoint", _read_offsets, lambda: b"0\n2\nfuzzed 0 5\nother 3 9\n"
    ),
    Kind(
        "partition.metadata",
        _read_partition_metadata,
        lambda: _written(
            lambda directory: PartitionMetadataFile(_FILES, directory).write(bytes(range(16))),
            "partition.metadata",
        ),
    ),
    Kind(
        "meta.properties",
        _read_properties,
        lambda: _written(
            lambda directory: write_meta_properties(
                _FILES, directory, MetaProperties("cluster", 1, bytes(range(16)))
            ),
            "meta.properties",
        ),
    ),
    Kind(f"{_STEM}.log", _read_nothing, _log),
)
_LOG = len(_KINDS) - 1


def seeds() -> Iterator[bytes]:
    """Yield valid files of each kind, and empty ones."""
    for number, kind in enumerate(_KINDS):
        yield bytes([number]) + kind.content()
        yield bytes([number])
    yield bytes([_LOG]) + bytes(make_batch(3, producer=(7, 0, 0), transactional=True))


def mutate(data: bytes, random: Random) -> bytes:
    """Change the content: a log as batches, a snapshot with a valid checksum."""
    if not data:
        return random.randbytes(20)
    number, content = data[:1], data[1:]
    kind = data[0] % len(_KINDS)
    if kind == _LOG:
        return number + mutate_batches(content, random)
    content = spoil(content, random)
    if _KINDS[kind].read is _read_snapshot and len(content) > 6 and random.random() < 0.8:
        content = content[:2] + crc32c(content[6:]).to_bytes(4) + content[6:]
    return number + content


TARGET = Target(run, seeds, mutate, lambda size: 8 * MEBIBYTE + 60 * size)
