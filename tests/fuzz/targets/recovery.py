"""Start of a broker on damaged files: it serves a valid prefix, or fails with a KafkaError.

An input is a list of damages to a data directory, which is the same in each run.
"""

import struct
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from random import Random
from typing import NamedTuple

from kclient.broker.log.log_file_utils import METADATA_PARTITION, partition_directory
from kclient.broker.log.unified_log import UnifiedLog
from kclient.common.errors import KafkaError
from kclient.common.types import TopicPartition
from kclient.record import CompressionType, RecordBatchBuilder, crc32c, read_batches
from tests.fuzz.batch_mutation import fixed_up, mutate_batches, spans
from tests.fuzz.message_mutation import TOPIC
from tests.fuzz.mutation import spoil
from tests.fuzz.oracle import refusals
from tests.fuzz.stepped_broker import SteppedBroker
from tests.fuzz.target import MEBIBYTE, Target
from tests.fuzz.targets.cluster_metadata import mutate_record
from tests.fuzz.workspace import workspace
from tests.support.disks.log_bench import make_batch
from tests.support.virtual.controller_calls import assert_created

_HEAD = struct.Struct(">BBHH")
_WRITE, _INSERT, _DELETE, _CUT, _REPLACE, _REMOVE, _FIX = range(7)
_MAX_DAMAGES = 6
_CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
_PARTITIONS = [TopicPartition(TOPIC, 0), TopicPartition("__consumer_offsets", 0)]


Batch = tuple[int, int]
"""Base offset and checksum."""


class Damage(NamedTuple):
    """A change to one file.

    Attributes:
        action: Kind of the damage.
        file: Index of the file in the template.
        position: First affected byte.
        length: Number of affected bytes, if `data` does not determine it.
        data: Bytes that are written.
    """

    action: int
    file: int
    position: int
    length: int = 0
    data: bytes = b""


def encode(damages: list[Damage]) -> bytes:
    """Encode damages as an input."""
    parts = []
    for action, file, position, length, data in damages:
        size = len(data) if action in {_WRITE, _INSERT, _REPLACE} else length
        parts.append(_HEAD.pack(action, file, position & 0xFFFF, size & 0xFFFF) + data)
    return b"".join(parts)


def decode(data: bytes) -> list[Damage]:
    """Decode the damages of an input."""
    found: list[Damage] = []
    position = 0
    while position + _HEAD.size <= len(data) and len(found) < _MAX_DAMAGES:
        action, file, place, size = _HEAD.unpack_from(data, position)
        position += _HEAD.size
        content = b""
        if action % 7 in {_WRITE, _INSERT, _REPLACE}:
            content = data[position : position + size]
            position += len(content)
        found.append(Damage(action % 7, file, place, size, content))
    return found


# --- the directory


@cache
def template() -> dict[str, bytes]:
    """Return the files of a broker with some data after a clean shutdown."""
    directory = workspace("recovery-template")
    broker = SteppedBroker(directory)
    services = broker.server.services
    services.topic_creation.create([TOPIC, "__consumer_offsets"], assert_created)
    log = services.replica_manager.partition(_PARTITIONS[0]).log
    for number, codec in enumerate((*CompressionType, CompressionType.NONE)):
        producer = (7, 0, 3 * number)
        log.append_as_leader(make_batch(3, producer=producer, compression=codec), 0)
    log.append_as_leader(make_batch(2, producer=(8, 0, 0), transactional=True), 0)
    broker.pass_time()
    broker.stop()
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file() and path.name != ".lock"
    }


@cache
def _names() -> list[str]:
    return sorted(template())


def damaged(damages: list[Damage]) -> dict[str, bytes]:
    """Return the files of the template with the damages."""
    files = dict(template())
    for damage in damages:
        name = _names()[damage.file % len(_names())]
        if damage.action == _REMOVE:
            files.pop(name, None)
        else:
            files[name] = _changed(files.get(name, b""), damage)
    return files


def _changed(content: bytes, damage: Damage) -> bytes:
    before, behind = content[: damage.position], content[damage.position :]
    data = damage.data
    if damage.action == _FIX:
        return fixed_up(content)
    return {
        _WRITE: before + data + behind[len(data) :],
        _INSERT: before + data + behind,
        _DELETE: before + behind[damage.length :],
        _CUT: before,
        _REPLACE: data,
    }[damage.action]


# --- the run


def run(data: bytes) -> None:
    """Start a broker on the damaged files, use it, and restart it."""
    directory = workspace("recovery")
    _lay_out(directory, damaged(decode(data)))
    with refusals():
        broker = SteppedBroker(directory)
        try:
            before = _use(broker)
        finally:
            broker.stop()
        was_clean = (directory / _CLEAN_SHUTDOWN).exists()
        broker = SteppedBroker(directory)
        try:
            for partition, kept in before.items():
                _check_kept(broker, partition, kept, was_clean=was_clean)
        finally:
            broker.stop()


def _check_kept(
    broker: SteppedBroker, partition: TopicPartition, kept: list[Batch], *, was_clean: bool
) -> None:
    """Compare a partition with its original records; without a clean shutdown it may be shorter."""
    now = _readable(broker.server.services.replica_manager.partition(partition).log)
    assert now == kept[: len(now)], f"{partition} has other records after a restart"
    assert len(now) == len(kept) or not was_clean, f"{partition} was truncated at a clean restart"


def _lay_out(directory: Path, files: dict[str, bytes]) -> None:
    for path in sorted(directory.rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    for name, content in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _use(broker: SteppedBroker) -> dict[TopicPartition, list[Batch]]:
    """Read each partition that is served, append to it, and read the new records."""
    found = {}
    for partition in _PARTITIONS:
        with suppress(KafkaError):
            log = broker.server.services.replica_manager.partition(partition).log
            before = _readable(log)
            log.append_as_leader(_keyed_batch(), 5)
            after = _readable(log)
            assert after[: len(before)] == before
            assert len(after) == len(before) + 1
            log.offset_for_timestamp(0)
            found[partition] = after
    broker.pass_time()
    return found


def _keyed_batch() -> bytearray:
    """Return a batch that a coordinator skips when it loads: of an unknown record type."""
    builder = RecordBatchBuilder(bytearray(200))
    builder.append(1_700_000_000_000, b"\x00\x63", b"v", None)
    return bytearray(builder.seal())


def _readable(log: UnifiedLog) -> list[Batch]:
    """Return offset and checksum of each batch; all must be complete, valid and in order."""
    found: list[Batch] = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        records = log.read(offset, MEBIBYTE).records
        data = records if isinstance(records, bytes) else records.read()
        batches = list(read_batches(data))
        if not batches:
            break
        for batch in batches:
            assert batch.next_offset > offset
            offset = batch.next_offset
            found.append((batch.base_offset, batch.crc))
    return found


# --- inputs


def seeds() -> Iterator[bytes]:
    """Yield no damage, a crash, and each file missing, empty, truncated and with a flipped byte."""
    yield b""
    crash = Damage(_REMOVE, _names().index(_CLEAN_SHUTDOWN), 0)
    yield encode([crash])
    for number, name in enumerate(_names()):
        half = len(template()[name]) // 2
        for damage in (
            Damage(_REMOVE, number, 0),
            Damage(_CUT, number, 0),
            Damage(_CUT, number, half),
            Damage(_WRITE, number, half, 0, b"\xff"),
        ):
            yield encode([damage])
            yield encode([crash, damage])


def mutate(data: bytes, random: Random) -> bytes:
    """Add a damage, or change one."""
    damages = decode(data)
    action = random.random()
    if not damages or (action < 0.6 and len(damages) < _MAX_DAMAGES):
        damages.append(_new_damage(damages, random))
    elif action < 0.75:
        del damages[random.randrange(len(damages))]
    else:
        place = random.randrange(len(damages))
        damage = damages[place]
        damages[place] = damage._replace(
            position=random.choice((damage.position, random.randrange(600))),
            data=spoil(damage.data, random) if damage.data else b"",
        )
    return encode(damages)


def _new_damage(before: list[Damage], random: Random) -> Damage:
    number = random.randrange(len(_names()))
    name = _names()[number]
    content = damaged(before).get(name, b"")
    if random.random() < 0.2:
        action = random.choice((_DELETE, _CUT, _REMOVE, _FIX))
        place = random.randrange(len(content) + 1)
        return Damage(action, number, place, random.randrange(1, 90))
    if name.endswith(".log"):
        is_metadata = name.startswith(_directory_of(METADATA_PARTITION))
        changed = _metadata(content, random) if is_metadata else mutate_batches(content, random)
    elif name.endswith(".snapshot"):
        changed = spoil(content, random)
        changed = changed[:2] + crc32c(changed[6:]).to_bytes(4) + changed[6:]
    else:
        changed = spoil(content, random)
    return Damage(_REPLACE, number, 0, 0, changed[:4000])


def _directory_of(partition: TopicPartition) -> str:
    return partition_directory(Path(), partition).name


def _metadata(content: bytes, random: Random) -> bytes:
    """Change or add one record of the cluster metadata."""
    found = spans(content)
    if not found or random.random() < 0.25:
        return mutate_batches(content, random)
    start, end = random.choice(found)
    try:
        (batch,) = read_batches(fixed_up(content[start:end]))
        values = [bytes(record.value or b"") for record in batch.records()]
    except (KafkaError, ValueError):
        return mutate_batches(content, random)
    if not values:
        return mutate_batches(content, random)
    place = random.randrange(len(values))
    values[place] = mutate_record(values[place], random)
    builder = RecordBatchBuilder(bytearray(1 << 16), base_offset=batch.base_offset)
    for value in values:
        builder.append(batch.base_timestamp, None, value, None)
    return content[:start] + bytes(builder.seal()) + content[end:]


TARGET = Target(run, seeds, mutate, lambda size: 24 * MEBIBYTE + 100 * size)
