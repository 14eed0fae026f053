"""Interoperability of batches with other implementations."""

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from aiokafka.record.default_records import DefaultRecordBatch as AiokafkaBatch
from aiokafka.record.memory_records import MemoryRecords as AiokafkaRecords
from kafka.record.default_records import DefaultRecordBatch as KafkaPythonBatch
from kafka.record.memory_records import MemoryRecords as KafkaPythonRecords

from kclient.record import (
    RECORD_BATCH_OVERHEAD,
    CompressionType,
    RecordBatch,
    RecordBatchBuilder,
    parse_header,
)
from kclient.record.sealing import write_header
from tests.record.foreign_streams import FOREIGN

GOLDEN = Path(__file__).parent / "golden" / "foreign_batches.json"
BATCHES: list[dict[str, Any]] = json.loads(GOLDEN.read_text())


def raw(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def rows(batch: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [
        (
            record["timestamp"],
            raw(record["key"]),
            raw(record["value"]),
            [(name, raw(value)) for name, value in record["headers"]],
        )
        for record in batch["records"]
    ]


def test_golden_batches_cover_all_codecs() -> None:
    covered = {(batch["source"].split()[0], batch["codec"]) for batch in BATCHES}
    assert covered == {
        (source, kind.name.lower())
        for source in ("apache-kafka", "kafka-python", "aiokafka")
        for kind in CompressionType
    }


@pytest.mark.parametrize(
    "golden", BATCHES, ids=lambda b: f"{b['source']}-{b['codec']}-{len(b['records'])}"
)
def test_foreign_batches_are_read(twin: ModuleType, golden: dict[str, Any]) -> None:
    batch = twin.RecordBatch(bytes.fromhex(golden["hex"]))
    batch.ensure_valid()
    assert batch.compression_type.name.lower() == golden["codec"]
    for name in ("is_transactional", "producer_id", "producer_epoch", "base_sequence"):
        assert getattr(batch, name) == golden[name]
    expected = rows(golden)
    assert [record[1:] for record in batch.records()] == expected
    assert [record.offset for record in batch.records()] == list(range(len(expected)))
    assert batch.max_timestamp == max(row[0] for row in expected)
    taken = twin.BatchCursor(batch, "t", 0).take()
    assert [(r.timestamp_ms, r.key, r.value, r.headers) for r in taken] == expected


@pytest.mark.parametrize(
    ("kind", "pack"), [(kind, pack) for kind, _, pack in FOREIGN], ids=[each[1] for each in FOREIGN]
)
def test_every_legal_stream_of_a_codec_is_read(
    twin: ModuleType, kind: CompressionType, pack: Callable[[bytes], bytes]
) -> None:
    plain, written = ours(twin, CompressionType.NONE)
    data = memoryview(
        bytearray(plain[:RECORD_BATCH_OVERHEAD] + pack(plain[RECORD_BATCH_OVERHEAD:]))
    )
    header = parse_header(data, 0, 0)
    header.attributes |= kind
    write_header(data, header)
    batch = twin.RecordBatch(data)
    batch.ensure_valid()
    assert [record[1:] for record in batch.records()] == written
    taken = twin.BatchCursor(batch, "t", 0).take()
    assert [(r.timestamp_ms, r.key, r.value, r.headers) for r in taken] == written
    columns = twin.decode_columns([batch])
    assert columns == twin.decode_columns([twin.RecordBatch(plain)])
    assert columns.length == len(written)


@pytest.mark.parametrize(
    "golden", [batch for batch in BATCHES if batch["codec"] == "none"], ids=lambda b: b["source"]
)
def test_uncompressed_batches_are_byte_identical(twin: ModuleType, golden: dict[str, Any]) -> None:
    """Uncompressed batches have one canonical encoding."""
    expected = bytes.fromhex(golden["hex"])
    builder = twin.RecordBatchBuilder(bytearray(len(expected)))
    for row in rows(golden):
        assert builder.append(*row) >= 0
    state = (golden["producer_id"], golden["producer_epoch"], golden["base_sequence"])
    sealed = builder.seal(*state, transactional=golden["is_transactional"])
    epoch = int.from_bytes(expected[12:16], signed=True)  # each writes its own for unknown
    assert bytes(sealed[:12]) == expected[:12]
    assert epoch in {-1, 0}
    assert bytes(sealed[16:]) == expected[16:]


def ours(twin: ModuleType, compression: CompressionType) -> tuple[bytes, list[tuple[Any, ...]]]:
    builder = twin.RecordBatchBuilder(bytearray(200_000), base_offset=40)
    written: list[tuple[Any, ...]] = [
        (1_700_000_000_000, b"key", b"value", []),
        (1_699_999_999_000, None, b"v" * 5000, [("h", b"x"), ("null", None), ("ü", b"")]),
        (1_700_000_100_000, b"", None, []),
        *((1_700_000_000_000 + i, b"%d" % i, b"value %d" % i * 9, []) for i in range(300)),
    ]
    for row in written:
        builder.append(*row)
    sealed = builder.seal(9, 8, 7, transactional=True, compression=compression)
    return bytes(sealed), written


@pytest.mark.parametrize("compression", CompressionType)
@pytest.mark.parametrize("reader", [KafkaPythonRecords, AiokafkaRecords])
def test_other_clients_read_our_batches(
    twin: ModuleType, reader: Any, compression: CompressionType
) -> None:
    data, written = ours(twin, compression)
    records = reader(data)
    batch = records.next_batch()
    assert batch.validate_crc()
    assert isinstance(batch, KafkaPythonBatch | AiokafkaBatch)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (9, 8, 7)
    assert batch.is_transactional
    read = [(r.timestamp, r.key, r.value, list(r.headers)) for r in batch]
    assert read == written
    assert not records.has_next()


def test_golden_batch_round_trip_through_builder() -> None:
    for golden in BATCHES:
        source = RecordBatch(bytes.fromhex(golden["hex"]))
        builder = RecordBatchBuilder(bytearray(1000))
        pieces = []
        for record in source.records():
            if builder.append(*record[1:]) < 0:
                pieces.append(builder)
                builder = RecordBatchBuilder(bytearray(1000))
                assert builder.append(*record[1:]) == 0
        pieces.append(builder)
        read = [record[1:] for piece in pieces for record in RecordBatch(piece.seal()).records()]
        assert read == rows(golden)
