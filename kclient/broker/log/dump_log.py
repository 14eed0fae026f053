"""Dump and verification of log files, in the output format of Kafka's DumpLogSegments."""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from kclient.broker.log import log_file_utils
from kclient.broker.log.abstract_index import CorruptIndexError
from kclient.broker.log.file_records import FileRecords
from kclient.broker.log.offset_index import OffsetIndex
from kclient.broker.log.producer_snapshot import CorruptSnapshotError, decode_snapshot
from kclient.broker.log.producer_state_entry import ProducerStateEntry
from kclient.broker.log.time_index import TimeIndex
from kclient.broker.log.transaction_index import TransactionIndex
from kclient.common.broker_errors import CorruptRecordError
from kclient.common.errors import CompressionError, InvalidArgumentError, KafkaError
from kclient.common.files import Files
from kclient.record import (
    BatchHeader,
    ConsumerRecord,
    EndTxnMarker,
    RecordBatch,
    TimestampType,
    increment_sequence,
    iter_records,
)

RecordDecoder = Callable[[bytes | None, bytes | None], tuple[str | None, str | None]]
"""Decodes a record's key and value into text; None omits one."""

Index = TypeVar("Index", OffsetIndex, TimeIndex)


def decode_as_text(key: bytes | None, value: bytes | None) -> tuple[str | None, str | None]:
    """Show key and value as UTF-8."""
    return (
        None if key is None else key.decode(errors="replace"),
        None if value is None else value.decode(errors="replace"),
    )


@dataclass(frozen=True, slots=True)
class DumpOptions:
    """Options of a dump.

    Attributes:
        deep: Show the records of each batch.
        print_data: Show keys and values of the records.
        index_sanity_check: Only run the sanity check of indexes.
        verify_index_only: Only verify indexes against their log.
        decoder: Decodes keys and values into text.
    """

    deep: bool = False
    print_data: bool = False
    index_sanity_check: bool = False
    verify_index_only: bool = False
    decoder: RecordDecoder = decode_as_text


class LogDump:
    """Dump of one file, line by line.

    Attributes:
        problems: Errors found; complete once all lines were consumed.
    """

    def __init__(self, files: Files, path: Path, options: DumpOptions | None = None) -> None:
        self._files = files
        self._path = path
        self._options = options or DumpOptions()
        self.problems: list[str] = []

    def lines(self) -> Iterator[str]:
        """Yield the file's contents.

        Raises:
            InvalidArgumentError: The name is not that of a log file.
            OSError: The file cannot be read.
        """
        name = self._path.name
        base_offset = log_file_utils.base_offset_of(name)
        kinds: dict[str, Callable[[int], Iterator[str]]] = {
            log_file_utils.LOG_FILE_SUFFIX: self._log,
            log_file_utils.INDEX_FILE_SUFFIX: self._offset_index,
            log_file_utils.TIME_INDEX_FILE_SUFFIX: self._time_index,
            log_file_utils.TXN_INDEX_FILE_SUFFIX: self._transaction_index,
            log_file_utils.PRODUCER_SNAPSHOT_FILE_SUFFIX: self._snapshot,
        }
        kind = kinds.get(self._path.suffix)
        if kind is None or base_offset is None:
            raise InvalidArgumentError(
                f"file: got {name!r:.80}, expected <base offset> and one of {', '.join(kinds)}"
            )
        yield f"Dumping {self._path}"
        yield from kind(base_offset)

    def _problem(self, text: str) -> str:
        self.problems.append(text)
        return text

    def _records(self, path: Path) -> FileRecords:
        file = self._files.open(path)
        return FileRecords(file, file.size())

    def _log(self, base_offset: int) -> Iterator[str]:
        yield f"Log starting offset: {base_offset}"
        records = self._records(self._path)
        end = 0
        try:
            for batch in records.batches():
                end = batch.end_position
                yield self._batch_line(batch)
                if self._options.deep or self._options.print_data:
                    yield from self._record_lines(batch)
        except CorruptRecordError as problem:
            yield self._problem(f"Found a bad batch at position {end}: {problem}")
        finally:
            size = records.size
            records.close()
        if end < size and not self.problems:
            yield self._problem(f"Found {size - end} invalid bytes at the end of {self._path.name}")

    def _batch_line(self, batch: RecordBatch) -> str:
        valid = batch.is_valid()
        if not valid:
            self._problem(f"batch at position {batch.position}: its checksum is wrong")
        horizon = batch.delete_horizon_ms
        fields: dict[str, object] = {
            "baseOffset": batch.base_offset,
            "lastOffset": batch.last_offset,
            "count": batch.count,
            "baseSequence": batch.base_sequence,
            "lastSequence": batch.last_sequence,
            "producerId": batch.producer_id,
            "producerEpoch": batch.producer_epoch,
            "partitionLeaderEpoch": batch.partition_leader_epoch,
            "isTransactional": _flag(batch.is_transactional),
            "isControl": _flag(batch.is_control),
            "deleteHorizonMs": "OptionalLong.empty"
            if horizon is None
            else f"OptionalLong[{horizon}]",
            "position": batch.position,
            _time_label(batch): batch.max_timestamp,
            "size": batch.size_in_bytes,
            "magic": batch.magic,
            "compresscodec": self._codec(batch),
            "crc": batch.crc,
            "isvalid": _flag(valid),
        }
        return _line(fields)

    def _codec(self, batch: RecordBatch) -> str:
        try:
            return batch.compression_type.label
        except CompressionError as problem:
            self._problem(str(problem))
            return "unknown"

    def _record_lines(self, batch: RecordBatch) -> Iterator[str]:
        try:
            for record in iter_records(batch):
                yield self._checked_record_line(batch, record)
        except KafkaError as problem:
            yield self._problem(f"| {problem}")

    def _checked_record_line(self, batch: RecordBatch, record: ConsumerRecord) -> str:
        sequence = -1
        if batch.base_sequence >= 0:
            # By offset: compaction may have removed records before it.
            delta = record.offset - batch.base_offset
            sequence = increment_sequence(batch.base_sequence, delta)
        try:
            return f"| {self._record_line(batch, record, sequence)}"
        except CorruptRecordError as problem:
            return self._problem(f"| {problem}")

    def _record_line(self, batch: RecordBatch, record: ConsumerRecord, sequence: int) -> str:
        fields: dict[str, object] = {
            "offset": record.offset,
            _time_label(batch): record.timestamp,
            "keySize": -1 if record.key is None else len(record.key),
            "valueSize": -1 if record.value is None else len(record.value),
            "sequence": sequence,
            "headerKeys": f"[{','.join(name for name, _ in record.headers)}]",
        }
        if batch.is_control:
            fields |= _control_fields(batch, record)
        elif self._options.print_data:
            key, value = self._options.decoder(record.key, record.value)
            fields |= {} if key is None else {"key": key}
            fields |= {} if value is None else {"payload": value}
        return _line(fields)

    def _offset_index(self, base_offset: int) -> Iterator[str]:
        if not self._files.size(self._path):
            yield f"{self._path} is empty."  # Kafka prints this for offset indexes only
            return
        index = OffsetIndex(self._files, self._path, base_offset, self._files.size(self._path))
        yield from self._checked_index(index, self._offset_entries)

    def _time_index(self, base_offset: int) -> Iterator[str]:
        index = TimeIndex(self._files, self._path, base_offset, self._files.size(self._path))
        yield from self._checked_index(index, self._time_entries)

    def _checked_index(
        self, index: Index, entries: Callable[[Index, FileRecords], Iterator[str]]
    ) -> Iterator[str]:
        index.open()
        try:
            if self._options.index_sanity_check:
                yield self._sanity(index)
                return
            if self._files.size(self._path) % index.entry_size:
                yield self._problem(f"{self._path.name}: its last entry is cut off")
            records = self._records(self._path.with_suffix(log_file_utils.LOG_FILE_SUFFIX))
            try:
                yield from entries(index, records)
            finally:
                records.close()
        finally:
            index.release()

    def _sanity(self, index: OffsetIndex | TimeIndex) -> str:
        try:
            index.sanity_check()
        except CorruptIndexError as problem:
            return self._problem(str(problem))
        return f"{self._path} passed sanity check."

    def _offset_entries(self, index: OffsetIndex, records: FileRecords) -> Iterator[str]:
        for number in range(index.entries):
            entry = index.entry(number)
            if number and entry.offset == index.base_offset:
                return  # the index of an active segment, preallocated with zeros
            header = _header_at(records, entry.position)
            if header is None or header.last_offset != entry.offset:
                found = "nothing" if header is None else str(header.last_offset)
                yield self._problem(
                    f"Index offset: {entry.offset}, log offset at {entry.position}: {found}"
                )
            if not self._options.verify_index_only:
                yield f"offset: {entry.offset} position: {entry.position}"

    def _time_entries(self, index: TimeIndex, records: FileRecords) -> Iterator[str]:
        greatest = [(header.last_offset, header.max_timestamp) for header in records.headers()]
        previous = -1
        for number in range(index.entries):
            entry = index.entry(number)
            if number and entry.offset == index.base_offset and not entry.timestamp:
                return  # the index of an active segment, preallocated with zeros
            # The entry's offset lies in the first batch whose last offset is not below it.
            place = bisect_left(greatest, (entry.offset, -1))
            fits = place < len(greatest) and greatest[place][1] == entry.timestamp
            if not fits:
                yield self._problem(
                    f"Index timestamp: {entry.timestamp} is not that of offset {entry.offset}"
                )
            if entry.timestamp <= previous:
                yield self._problem(f"Index timestamp: {entry.timestamp}, before: {previous}")
            previous = entry.timestamp
            if not self._options.verify_index_only:
                yield f"timestamp: {entry.timestamp} offset: {entry.offset}"

    def _transaction_index(self, base_offset: int) -> Iterator[str]:
        index = TransactionIndex(self._files, self._path, base_offset)
        try:
            index.sanity_check()
            for txn in index.aborted_txns():
                yield (
                    f"version: 0 producerId: {txn.producer_id} firstOffset: {txn.first_offset} "
                    f"lastOffset: {txn.last_offset} lastStableOffset: {txn.last_stable_offset}"
                )
        except CorruptIndexError as problem:
            yield self._problem(str(problem))
        finally:
            index.close()

    def _snapshot(self, _: int) -> Iterator[str]:
        try:
            entries = decode_snapshot(self._files.read_bytes(self._path))
        except CorruptSnapshotError as problem:
            yield self._problem(f"{self._path.name}: {problem}")
            return
        for entry in entries:
            yield _producer_line(entry)


def _producer_line(entry: ProducerStateEntry) -> str:
    txn = entry.current_txn_first_offset
    fields: dict[str, object] = {
        "producerId": entry.producer_id,
        "producerEpoch": entry.producer_epoch,
        "coordinatorEpoch": entry.coordinator_epoch,
        "currentTxnFirstOffset": "OptionalLong.empty" if txn is None else f"OptionalLong[{txn}]",
        "lastTimestamp": entry.last_timestamp,
    }
    if entry.batches:
        batch = entry.batches[-1]
        fields |= {
            "firstSequence": batch.first_sequence,
            "lastSequence": batch.last_sequence,
            "lastOffset": batch.last_offset,
            "offsetDelta": batch.offset_delta,
            "timestamp": batch.timestamp,
        }
    return _line(fields)


def _header_at(records: FileRecords, position: int) -> BatchHeader | None:
    try:
        return records.header_at(position)
    except CorruptRecordError:
        return None


def _control_fields(batch: RecordBatch, record: ConsumerRecord) -> dict[str, object]:
    if batch.producer_id < 0:
        return {}
    marker = EndTxnMarker.parse(record.key, record.value)
    return {"endTxnMarker": marker.control_type.name, "coordinatorEpoch": marker.coordinator_epoch}


def _time_label(batch: RecordBatch) -> str:
    stamped = batch.timestamp_type is TimestampType.LOG_APPEND_TIME
    return "LogAppendTime" if stamped else "CreateTime"


def _flag(value: bool) -> str:  # noqa: FBT001 (a bool is what is shown)
    return str(value).lower()


def _line(fields: dict[str, object]) -> str:
    return " ".join(f"{name}: {value}" for name, value in fields.items())
