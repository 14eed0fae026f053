"""Decompression bombs: memory does not depend on the size of the content."""

import os
import subprocess
import sys
import tracemalloc

import pytest

from kclient.common.errors import CompressionError
from kclient.record import CompressionType
from kclient.record.compression import decompress

MIB = 1 << 20
BOMB_MIB = 192
SLACK_MIB = 24
WINDOWS_MIB = {"zstd_wide": 128, "zstd_sized": 128}  # which the frames state

PROGRAM = """
import resource, sys, zlib
import lz4.frame, snappy, zstandard
from kclient.common.errors import CompressionError
from kclient.record import CompressionType
from kclient.record.compression import open_stream

MIB = 1 << 20
BOMB = {bomb} * MIB
ZEROS = bytes(MIB)

def stream(codec):
    return b"".join([codec.compress(ZEROS) for _ in range(BOMB // MIB)]) + codec.flush()

def lz4_bomb():
    codec = lz4.frame.LZ4FrameCompressor()
    parts = [codec.begin()] + [codec.compress(ZEROS) for _ in range(BOMB // MIB)] + [codec.flush()]
    return b"".join(parts)

def xerial():
    block = snappy.compress(ZEROS)
    framed = (len(block).to_bytes(4) + block) * (BOMB // MIB)
    return b"\\x82SNAPPY\\x00\\x00\\x00\\x00\\x01\\x00\\x00\\x00\\x01" + framed

def zstd(window, **options):
    parameters = zstandard.ZstdCompressionParameters(window_log=window, **options)
    return zstandard.ZstdCompressor(compression_params=parameters)

BOMBS = dict(
    gzip=lambda: stream(zlib.compressobj(9, zlib.DEFLATED, 31)),
    lz4=lz4_bomb,
    snappy=xerial,
    snappy_claim=lambda: b"\\x80\\x80\\x80\\x80\\x0f" + bytes(100),
    zstd=lambda: stream(zstd(21, write_content_size=False).compressobj()),
    zstd_wide=lambda: stream(zstd(27, write_content_size=False).compressobj()),
    zstd_sized=lambda: stream(zstd(27).compressobj(size=BOMB)),
    zstd_claim=lambda: bytes.fromhex("28b52ffda0") + (30 * MIB).to_bytes(4, "little") + b"junk",
)
kind, name = sys.argv[1:]
bomb = BOMBS[name]()
kind = CompressionType[kind]

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

before, size = peak(), 0
try:
    stream = open_stream(kind, bomb)
    while piece := stream.read(MIB):
        size += len(piece)
except CompressionError as error:
    print(peak() - before, error)
else:
    assert size == BOMB
    print(peak() - before, kind.label)
"""


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("GZIP", "gzip"),
        ("LZ4", "lz4"),
        ("SNAPPY", "snappy"),
        ("SNAPPY", "snappy_claim"),
        ("ZSTD", "zstd"),
        ("ZSTD", "zstd_wide"),
        ("ZSTD", "zstd_sized"),
        ("ZSTD", "zstd_claim"),
    ],
)
def test_memory_does_not_depend_on_the_size_of_the_content(kind: str, name: str) -> None:
    program = PROGRAM.format(bomb=BOMB_MIB)
    ran = subprocess.run(
        [sys.executable, "-c", program, kind, name], capture_output=True, text=True, check=True
    )
    grown, message = ran.stdout.split(maxsplit=1)
    assert kind.lower() in message
    assert int(grown) <= WINDOWS_MIB.get(name, 0) + SLACK_MIB


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param("28b52ffda0" + (30 << 20).to_bytes(4, "little").hex() + "0100", id="claim"),
        pytest.param("28b52ffd00a4" + "010000", id="window"),
    ],
)
def test_zstd_allocation_is_bounded_by_the_input_size(frame: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(CompressionError, match="zstd"):
            decompress(CompressionType.ZSTD, bytes.fromhex(frame) + bytes(100), 32 << 20)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 << 20


READER = """
import sys, zlib
import zstandard
from pathlib import Path
from kclient.record import (
    ColumnBuilder, CompressionType, PartitionCursor, RecordBatch, RecordBatchBuilder, encode_varint,
    parse_header,
)
from kclient.record.sealing import write_header

def peak():
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) // 1024

codec, count, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
packer = (
    zstandard.ZstdCompressor().compressobj() if codec == "ZSTD"
    else zlib.compressobj(6, zlib.DEFLATED, 31)
)
stream = bytearray()
for number in range(count):
    # attributes, timestamp delta, offset delta, null key, value, no headers
    head = bytes(2) + encode_varint(number) + b"\\x01" + encode_varint(size)
    stream += packer.compress(encode_varint(len(head) + size + 1) + head)
    for start in range(0, size, 1000):
        stream += packer.compress(b"x" * min(1000, size - start))
    stream += packer.compress(bytes(1))
stream += packer.flush()
builder = RecordBatchBuilder(bytearray(100))
builder.append(0, None, None)
data = memoryview(builder.seal().tobytes()[:61] + stream).toreadonly()
batch = memoryview(bytearray(data))
header = parse_header(batch, 0, 0)
header.attributes |= CompressionType[codec]
header.count, header.last_offset_delta = count, count - 1
write_header(batch, header)
assert RecordBatch(batch).summary().record_count == count
before = peak()
assert before < 64, "the broker's validation needs memory"
cursor, seen = PartitionCursor(batch, "t", 0), 0
while cursor.remaining:
    for record in cursor.take(500):
        assert len(record.value) == size
        seen += 1
        del record
assert seen == count
print(peak())
"""


@pytest.mark.parametrize("pure", ["", "1"], ids=["compiled", "pure"])
@pytest.mark.parametrize(
    ("codec", "count", "size"),
    [("ZSTD", 1, 80_000_000), ("GZIP", 1, 80_000_000), ("ZSTD", 270_000, 1700)],
)
def test_memory_depends_on_the_largest_record(codec: str, count: int, size: int, pure: str) -> None:
    """Twice the largest record, and 64 MiB for the interpreter, the window and a slice."""
    ran = subprocess.run(
        [sys.executable, "-c", READER, codec, str(count), str(size)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "KCLIENT_PURE_PYTHON": pure},
    )
    assert ran.returncode == 0, ran.stderr
    assert int(ran.stdout) < 2 * size / MIB + 64
