"""Compression of a batch's records with another codec."""

from collections.abc import Iterable, Iterator
from itertools import chain

from kclient.common.files import WireBytes
from kclient.record.batch_header import COMPRESSION_MASK, RECORD_BATCH_OVERHEAD
from kclient.record.compression import (
    CompressionType,
    Decompressor,
    compress,
    compress_pieces,
    decompress,
)
from kclient.record.payload_window import FIRST_WINDOW, NEXT_WINDOW
from kclient.record.record_batch import AbstractRecordBatch


def recompress_records(
    batch: AbstractRecordBatch, kind: CompressionType, level: int | None
) -> Iterable[WireBytes]:
    """Return the records of a batch, compressed with another codec, in pieces.

    Records of a usual size are one piece. The memory for others does not depend on their size.

    Raises:
        CompressionError: The records are corrupt.
        InvalidArgumentError: The level is outside of the codec's range.
        UnsupportedCompressionTypeError: The package of a codec is not installed.
    """
    content: WireBytes = batch.buffer[RECORD_BATCH_OVERHEAD:]
    rest = None
    if batch.attributes & COMPRESSION_MASK:
        content, rest = decompress(batch.compression_type, content, FIRST_WINDOW)
    if rest is None:
        return (compress(kind, content, level),)
    return compress_pieces(kind, chain((content,), _pieces(rest)), level)


def _pieces(stream: Decompressor) -> Iterator[bytes]:
    while piece := stream.read(NEXT_WINDOW):
        yield piece
