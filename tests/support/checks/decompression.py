"""Decompression of a whole stream, as far as a limit allows."""

from kclient.common.errors import CompressionError
from kclient.common.files import WireBytes
from kclient.record import CompressionType
from kclient.record.compression import decompress

DEFAULT_LIMIT = 64 * 1024 * 1024


def decompressed(kind: CompressionType, data: WireBytes, limit: int = DEFAULT_LIMIT) -> bytes:
    """Return the content of a stream.

    Raises:
        CompressionError: The stream is invalid, or has more than `limit` bytes.
    """
    if kind is CompressionType.NONE:
        return bytes(data)
    content, rest = decompress(kind, data, limit)
    if rest is not None and rest.read(1):
        raise CompressionError(f"{kind.label}: more than the limit of {limit} bytes")
    return content
