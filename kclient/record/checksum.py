"""Checksum of record batches: CRC-32C, from a package that uses the CPU instruction."""

try:
    from crc32c import crc32c
except ImportError as error:
    raise ImportError(
        f"kclient needs the package 'crc32c' for the checksums of record batches: {error}; install "
        "it with pip install crc32c"
    ) from error

__all__ = ["crc32c"]
