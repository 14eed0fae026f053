"""Compression codecs of a batch."""

from enum import IntEnum

from kclient.common.errors import CompressionError


class CompressionType(IntEnum):
    """Codec by its id in the batch's attributes (Kafka: CompressionType)."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4

    @classmethod
    def for_id(cls, number: int) -> "CompressionType":
        """Return the codec of an id.

        Raises:
            CompressionError: No codec has that id.
        """
        try:
            return cls(number)
        except ValueError:
            raise CompressionError(
                f"compression type: got id {number}, expected 0 to {max(cls)}"
            ) from None
