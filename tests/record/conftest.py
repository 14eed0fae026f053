"""Fixtures of both implementations of the record code."""

from collections.abc import Callable
from importlib import import_module
from types import ModuleType

import pytest

from kclient.record import RecordBatch, RecordBatchBuilder, reference


def implementations() -> list[ModuleType]:
    try:
        return [reference, import_module("kclient.record._speed")]
    except ImportError:  # built without a compiler
        return [reference]


IMPLEMENTATIONS = implementations()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrize tests with a `twin` argument by implementation."""
    if "twin" in metafunc.fixturenames:
        names = [module.__name__.rpartition(".")[2] for module in IMPLEMENTATIONS]
        metafunc.parametrize("twin", IMPLEMENTATIONS, ids=names)


@pytest.fixture(scope="session")
def twins() -> list[ModuleType]:
    """All implementations, for tests that compare them."""
    return IMPLEMENTATIONS


@pytest.fixture
def filled() -> Callable[..., RecordBatchBuilder]:
    """Return a builder with records ``v0``, ``v1`` and so on."""

    def make(count: int = 3, base_offset: int = 0) -> RecordBatchBuilder:
        builder = RecordBatchBuilder(bytearray(4096), base_offset=base_offset)
        for index in range(count):
            builder.append(1000 + index, b"k%d" % index, b"v%d" % index)
        return builder

    return make


@pytest.fixture
def batch(filled: Callable[..., RecordBatchBuilder]) -> RecordBatch:
    """Three records at offsets 10 to 12."""
    return RecordBatch(filled(3, 10).seal())
