"""Checksum of record batches: CRC-32C, from a package that uses the CPU instruction."""

import sys
from collections.abc import Callable
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import Any


def _import_crc32c() -> Any:
    """Return the compiled module of the package crc32c, or else the package.

    The package itself imports argparse, email and importlib.metadata, which is a fifth of the time
    that the import of a client would take.
    """
    package = None if "crc32c" in sys.modules else PathFinder.find_spec("crc32c")
    if package is not None and package.submodule_search_locations is not None:
        spec = PathFinder.find_spec("crc32c._crc32c", package.submodule_search_locations)
        if spec is not None and spec.loader is not None:
            module = module_from_spec(spec)
            spec.loader.exec_module(module)
            return module
    return import_module("crc32c")


try:
    _module = _import_crc32c()
except ImportError as error:
    raise ImportError(
        f"kclient needs the package 'crc32c' for the checksums of record batches: {error}; install "
        "it with pip install crc32c"
    ) from error

crc32c: Callable[..., int] = _module.crc32c
"""Return the checksum of bytes, continued from that of the bytes before them."""
