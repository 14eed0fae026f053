"""A simulation with one process."""

from collections.abc import Iterator

import pytest

from kclient.testing.virtual import (
    VirtualProcess,
    VirtualWorld,
)


@pytest.fixture
def world() -> Iterator[VirtualWorld]:
    with VirtualWorld(1) as made:
        yield made


@pytest.fixture
def process(world: VirtualWorld) -> VirtualProcess:
    return world.machine("m").process("p")
