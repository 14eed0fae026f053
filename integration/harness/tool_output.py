"""Parsers of the output of Apache Kafka's tools. Pure functions."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tests.support.clients.foreign_record import ForeignRecord, Header

# For the console consumer, so that keys, values and headers may hold tabs, commas and line ends.
FIELD, HEADER, LINE, NULL = "\x1f", "\x1e", "\x1d\n", "\x02"
_NO_HEADERS = b"NO_HEADERS"


@dataclass(frozen=True, slots=True)
class PartitionDescription:
    """A line of TopicCommand --describe."""

    partition: int
    leader: int | None
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class GroupOffset:
    """A line of ConsumerGroupCommand --describe; None is a dash."""

    topic: str
    partition: int
    current_offset: int | None
    log_end_offset: int | None
    lag: int | None
    consumer_id: str | None


@dataclass(frozen=True, slots=True)
class GroupState:
    """ConsumerGroupCommand --describe --state."""

    group: str
    state: str
    members: int


@dataclass(frozen=True, slots=True)
class DumpedBatch:
    """A batch as DumpLogSegments prints it: its fields, and those of each record."""

    fields: dict[str, str]
    records: tuple[dict[str, str], ...]


@dataclass(frozen=True, slots=True)
class Throughput:
    """What a performance tool measured."""

    records: int
    records_per_second: float


def _nullable(raw: bytes) -> bytes | None:
    return None if raw == NULL.encode() else raw


def _headers(raw: bytes) -> tuple[Header, ...]:
    if raw == _NO_HEADERS:
        return ()
    pairs = (pair.partition(b":") for pair in raw.split(HEADER.encode()))
    return tuple((key.decode(), _nullable(value)) for key, _, value in pairs)


def console_records(stdout: bytes) -> list[ForeignRecord]:
    """Reads the console consumer: timestamp, partition, offset, …, headers, key, value."""
    records = []
    for line in stdout.split(LINE.encode())[:-1]:
        fields = line.split(FIELD.encode())
        stamp, partition, offset = (field.partition(b":")[2] for field in fields[:3])
        # Kafka 4 adds the delivery count and the leader epoch, which Kafka 3 does not know.
        headers, key, value = fields[-3:]
        records.append(
            ForeignRecord(
                _nullable(value),
                _nullable(key),
                _headers(headers),
                int(stamp),
                int(partition),
                int(offset),
            )
        )
    return records


def json_events(stdout: bytes) -> list[dict[str, Any]]:
    """Reads the JSON lines of the verifiable clients; the last line may still be half written."""
    lines = stdout.split(b"\n")[:-1]
    return [json.loads(line) for line in lines if line.startswith(b"{")]


def partition_descriptions(stdout: bytes) -> list[PartitionDescription]:
    found = []
    for line in stdout.decode().splitlines():
        if line.startswith("\t"):
            fields = dict(part.split(": ", 1) for part in line.strip().split("\t") if ": " in part)
            leader = fields["Leader"]
            found.append(
                PartitionDescription(
                    int(fields["Partition"]),
                    int(leader) if leader.isdigit() else None,
                    _numbers(fields["Replicas"]),
                    _numbers(fields["Isr"]),
                )
            )
    return sorted(found, key=lambda row: row.partition)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(",") if part)


def _table(stdout: bytes) -> Iterator[Sequence[str]]:
    """Yields the cells of the lines below a heading; cells hold no blanks."""
    lines = [line.split() for line in stdout.decode().splitlines() if line.strip()]
    yield from lines[1:]


def _offset(cell: str) -> int | None:
    return None if cell == "-" else int(cell)


def group_offsets(stdout: bytes) -> list[GroupOffset]:
    rows = [
        GroupOffset(
            topic,
            int(partition),
            _offset(current),
            _offset(end),
            _offset(lag),
            None if who == "-" else who,
        )
        for _, topic, partition, current, end, lag, who, *_ in _table(stdout)
    ]
    return sorted(rows, key=lambda row: (row.topic, row.partition))


def group_state(stdout: bytes) -> GroupState:
    # The assignment strategy may be an empty cell, so count from the ends.
    (cells,) = _table(stdout)
    return GroupState(cells[0], cells[-2], int(cells[-1]))


def topic_offsets(stdout: bytes) -> dict[int, int]:
    """Reads GetOffsetShell's lines `topic:partition:offset`; an offset may be missing."""
    lines = (line.rsplit(":", 2) for line in stdout.decode().splitlines())
    return {int(partition): int(offset) for _, partition, offset in lines if offset}


_FIELD = re.compile(r"(\w+): (.*?)(?= \w+: |$)")


def _fields(text: str) -> dict[str, str]:
    return {name: value.strip() for name, value in _FIELD.findall(text)}


def dumped_batches(stdout: bytes) -> list[DumpedBatch]:
    """Reads DumpLogSegments --deep-iteration of .log files.

    With --print-data-log a value that holds ` word: ` cannot be distinguished from a field.
    """
    batches: list[tuple[dict[str, str], list[dict[str, str]]]] = []
    for line in stdout.decode(errors="replace").splitlines():
        if line.startswith("baseOffset: "):
            batches.append((_fields(line), []))
        elif line.startswith("| ") and batches:
            batches[-1][1].append(_fields(line[2:]))
    return [DumpedBatch(fields, tuple(records)) for fields, records in batches]


_PRODUCED = re.compile(rb"(\d+) (?:steady state )?records sent, ([\d.]+) records/sec")


def producer_throughput(stdout: bytes) -> Throughput:
    """Reads the summary of ProducerPerformance: its last line that counts records.

    After a warm-up, that is the one without the records of the warm-up.
    """
    records, rate = _PRODUCED.findall(stdout)[-1]
    return Throughput(int(records), float(rate))


def consumer_throughput(stdout: bytes) -> Throughput:
    """Reads the table of ConsumerPerformance: its last line."""
    cells = [cell.strip() for cell in stdout.decode().strip().splitlines()[-1].split(",")]
    return Throughput(int(cells[4]), float(cells[5]))


def table_rows(output: bytes) -> list[dict[str, str]]:
    """Rows of a table with a line of column names, none of whose cells has a space."""
    lines = [line.split() for line in output.decode().splitlines() if line.strip()]
    return [dict(zip(lines[0], line, strict=False)) for line in lines[1:]]
