"""Packages of the compression codecs, imported at the first use of a codec.

A program that does not use a codec does not need its package.
"""

from functools import cache
from importlib import import_module
from typing import Any, Final

from kclient.common.broker_errors import UnsupportedCompressionTypeError
from kclient.record.compression_type import CompressionType

_LIBRARIES: Final = {
    CompressionType.SNAPPY: ("snappy", "python-snappy"),
    CompressionType.LZ4: ("lz4.frame", "lz4"),
    CompressionType.ZSTD: ("zstandard", "zstandard"),
}


@cache
def codec_library(kind: CompressionType) -> Any:
    """Return the module that implements a codec, None if the standard library does.

    Raises:
        UnsupportedCompressionTypeError: The package cannot be imported; the message names it.
    """
    if kind not in _LIBRARIES:
        return None
    module, package = _LIBRARIES[kind]
    try:
        return import_module(module)
    except ImportError as error:
        raise UnsupportedCompressionTypeError(
            f"compression type {kind.name.lower()!r}: the package {package!r} cannot be imported: "
            f"{error}; install it with pip install {package}"
        ) from error
