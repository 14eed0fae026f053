"""Damage in transit: in batches only, and detected by their checksums."""

import random

import pytest

from kclient.common.broker_errors import CorruptRecordError
from kclient.record import read_batches
from kclient.testing.virtual import DamagedBatches
from tests.support.clients import wire

BATCHES = [wire.batch([b"value" * size] * size) for size in (1, 2, 30)]
HEADER = b"a request's own fields \2\2"


def _intact(data: bytes) -> int:
    places = [data.find(batch) for batch in BATCHES]
    return sum(place >= 0 for place in places)


def _is_accepted(data: bytes) -> bool:
    try:
        return all(batch.is_valid() for batch in read_batches(data))
    except CorruptRecordError:
        return False


@pytest.mark.parametrize("seed", range(20))
def test_damage_is_covered_by_the_checksum(seed: int) -> None:
    struck: list[int] = []
    damage = DamagedBatches(random.Random(seed), on_damage=lambda: struck.append(1))
    data = HEADER + b"".join(BATCHES) + HEADER
    damaged = damage(data)
    assert len(damaged) == len(data)
    assert _intact(damaged) == len(BATCHES) - 1
    assert damaged[: len(HEADER)] == damaged[-len(HEADER) :] == HEADER
    at, refused = len(HEADER), 0
    for batch in BATCHES:
        refused += not _is_accepted(damaged[at : at + len(batch)])
        at += len(batch)
    assert refused == len(struck) == 1


def test_bytes_without_a_complete_batch_are_not_damaged() -> None:
    damage = DamagedBatches(random.Random(1))
    for data in (b"", HEADER * 9, BATCHES[0][:-1], bytes(200), b"\2" * 200):
        assert damage(data) == data


def test_damage_follows_its_probability() -> None:
    damage = DamagedBatches(random.Random(1), chance=0.5)
    damaged = sum(damage(BATCHES[0]) != BATCHES[0] for _ in range(100))
    assert 30 < damaged < 70
