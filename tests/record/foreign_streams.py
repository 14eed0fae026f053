"""Streams as other compressors write them: each legal variant of a codec that Kafka reads."""

import gzip
import io
from collections.abc import Callable
from typing import Any

import lz4.frame
import snappy
import zstandard

from kclient.record import CompressionType


def members(*parts: bytes) -> bytes:
    return b"".join(map(gzip.compress, parts))


def named_gzip(data: bytes) -> bytes:
    packed = io.BytesIO()
    with gzip.GzipFile("name", "wb", fileobj=packed) as file:
        file.write(data)
    return packed.getvalue()


def xerial(*blocks: bytes) -> bytes:
    framed = b"".join(len(block).to_bytes(4) + block for block in blocks)
    return b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01" + framed


def xerial_chunks(*parts: bytes) -> bytes:
    return xerial(*map(snappy.compress, parts))


def lz4_frame(data: bytes, **options: Any) -> bytes:
    return bytes(lz4.frame.compress(data, **options))


def zstd_frames(*parts: bytes, **options: Any) -> bytes:
    return b"".join(map(zstandard.ZstdCompressor(**options).compress, parts))


def unsized_zstd(data: bytes, **parameters: Any) -> bytes:
    options = zstandard.ZstdCompressionParameters(write_content_size=False, **parameters)
    codec = zstandard.ZstdCompressor(compression_params=options).compressobj()
    return codec.compress(data) + codec.flush()


def flushed_zstd(data: bytes) -> bytes:
    codec = zstandard.ZstdCompressor().compressobj()
    step = len(data) // 7 + 1
    parts = [
        codec.compress(data[at : at + step]) + codec.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
        for at in range(0, len(data), step)
    ]
    return b"".join(parts) + codec.flush()


SKIPPABLE = bytes.fromhex("532a4d18 05000000") + b"extra"

GZIP_STREAMS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "gzip stored": lambda data: gzip.compress(data, 0),
    "gzip name": named_gzip,
    "gzip members": lambda data: members(data[:100], data[100:]),
    "gzip many members": lambda data: members(*pieces(data)),
    "gzip empty members": lambda data: members(b"", data[:100], b"", data[100:], b""),
    "gzip ignored end": lambda data: gzip.compress(data) + bytes(20),
}

SNAPPY_STREAMS: dict[str, Callable[[bytes], bytes]] = {
    "snappy raw": snappy.compress,
    "snappy xerial": xerial_chunks,
    "snappy chunks": lambda data: xerial_chunks(data[:9], data[9:]),
    "snappy empty chunk": lambda data: xerial_chunks(data[:9], b"", data[9:]),
    "snappy xerial streams": lambda data: xerial_chunks(data[:9]) + xerial_chunks(data[9:]),
    "snappy xerial version": lambda data: xerial_chunks(data).replace(
        b"Y\0\0\0\0\1", b"Y\0\0\0\0\2", 1
    ),
}

LZ4_STREAMS: dict[str, Callable[[bytes], bytes]] = {
    "lz4": lz4_frame,
    "lz4 linked": lambda data: lz4_frame(data, content_checksum=True, block_linked=True),
    "lz4 checksums": lambda data: lz4_frame(data, block_size=7, block_checksum=True),
    "lz4 size": lambda data: lz4_frame(data, block_size=4, store_size=True, block_linked=False),
    "lz4 ignored frame": lambda data: lz4_frame(data) + lz4_frame(b"ignored"),
}

ZSTD_STREAMS: dict[str, Callable[[bytes], bytes]] = {
    "zstd": zstd_frames,
    "zstd checksum": lambda data: zstd_frames(data, write_checksum=True),
    "zstd unsized": unsized_zstd,
    "zstd flushed": flushed_zstd,
    "zstd wide": lambda data: unsized_zstd(data, window_log=27),
    "zstd frames": lambda data: zstd_frames(data[:50], data[50:]),
    "zstd many frames": lambda data: zstd_frames(*pieces(data)),
    "zstd empty frames": lambda data: zstd_frames(b"", data[:50], b"", data[50:], b""),
    "zstd unsized frames": lambda data: unsized_zstd(data[:50]) + unsized_zstd(data[50:]),
    "zstd sized, unsized": lambda data: zstd_frames(data[:50]) + unsized_zstd(data[50:]),
    "zstd unsized, sized": lambda data: unsized_zstd(data[:50]) + zstd_frames(data[50:]),
    "zstd wide frames": lambda data: (
        unsized_zstd(data[:50], window_log=27) + unsized_zstd(data[50:], window_log=27)
    ),
    "zstd checksum frames": lambda data: zstd_frames(data[:50], data[50:], write_checksum=True),
    "zstd skippable frames": lambda data: (
        SKIPPABLE + zstd_frames(data[:50]) + SKIPPABLE + zstd_frames(data[50:]) + SKIPPABLE
    ),
    "zstd skippable end": lambda data: zstd_frames(data) + SKIPPABLE,
    "zstd unsized, skippable end": lambda data: unsized_zstd(data) + SKIPPABLE,
}

STREAMS = {
    CompressionType.GZIP: GZIP_STREAMS,
    CompressionType.SNAPPY: SNAPPY_STREAMS,
    CompressionType.LZ4: LZ4_STREAMS,
    CompressionType.ZSTD: ZSTD_STREAMS,
}


def pieces(data: bytes) -> list[bytes]:
    """Split data into about fifty pieces."""
    step = len(data) // 50 + 1
    return [data[at : at + step] for at in range(0, len(data), step)]


FOREIGN = [
    (kind, name, pack) for kind, streams in STREAMS.items() for name, pack in streams.items()
]
