"""Decompression bombs: memory does not depend on the size of the content."""

import subprocess
import sys
import tracemalloc

import pytest

from kclient.common.errors import CompressionError
from kclient.record import CompressionType
from kclient.record.compression import decompress

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
