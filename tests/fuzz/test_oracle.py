"""The oracle detects each kind of failure of a target."""

import logging
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from kclient.common.errors import KafkaError, ProtocolError
from tests.fuzz import seeded_engine
from tests.fuzz.message_mutation import MessageMutator
from tests.fuzz.oracle import FindingError, Oracle, refusals, work_of_a_unit
from tests.fuzz.session import Session
from tests.fuzz.target import CANARY, MEBIBYTE, Target
from tests.fuzz.targets import NAMES, target
from tests.protocol.catalogue import BY_NAME

LOGGER = logging.getLogger("kclient.fuzzed")
SECRET = CANARY.decode()
LIMIT = 12
"""Limit of the CPU time in these tests, in units of the oracle."""


def raises(_: bytes) -> None:
    raise IndexError


def refuses_with_a_secret(_: bytes) -> None:
    with refusals():
        raise ProtocolError(SECRET)


def logs_a_failure(_: bytes) -> None:
    try:
        raise KeyError
    except KeyError:
        LOGGER.exception("a request failed")


def logs_a_secret(_: bytes) -> None:
    LOGGER.debug("got %s", SECRET)


def takes_memory(_: bytes) -> None:
    bytearray(9 * MEBIBYTE)


def takes_time(_: bytes) -> None:
    for _number in range(4 * LIMIT):
        work_of_a_unit()


def judged(run: Callable[[bytes], None], *, measure: bool = False) -> str:
    """Return the place of the fault that the oracle reports."""
    oracle = Oracle(Target(run, lambda: ()), max_units=LIMIT)
    try:
        oracle.check(b"", measure=measure)
    except FindingError as finding:
        return finding.place
    finally:
        oracle.close()
    return ""


@pytest.mark.parametrize(
    ("run", "place"),
    [
        (raises, "IndexError at tests/fuzz/test_oracle.py"),
        (refuses_with_a_secret, "secret in error text"),
        (logs_a_failure, "logged KeyError at"),
        (logs_a_secret, "secret in log line of kclient.fuzzed"),
        (takes_time, "too slow"),
    ],
)
def test_oracle_detects_failures(run: Callable[[bytes], None], place: str) -> None:
    assert judged(run).startswith(place)


def test_time_within_the_limit_is_accepted() -> None:
    def takes_less_time(_: bytes) -> None:
        for _number in range(LIMIT // 4):
            work_of_a_unit()

    assert judged(takes_less_time) == ""


def test_memory_is_measured_on_request() -> None:
    assert judged(takes_memory, measure=True) == "too much memory"
    assert judged(takes_memory) == ""


def test_kafka_errors_are_accepted() -> None:
    def refuses(_: bytes) -> None:
        with refusals():
            raise KafkaError("no")

    assert judged(refuses) == ""


def test_planted_fault_is_found() -> None:
    """A decoder that does not check a length fails within a few thousand inputs."""
    kind = BY_NAME["MetadataResponse"]
    mutator = MessageMutator()
    found: list[bytes] = []

    def check(data: bytes) -> None:
        try:
            message = kind.decode(data, 9)
        except KafkaError:
            return
        if getattr(message, "cluster_id", "") is None:
            found.append(data)

    start = kind().encode_bytes(9)
    seeded_engine.fuzz(
        check, lambda data, random: mutator.mutated(kind, 9, data, random), [start],
        seed=1, limit=1_000,
    )  # fmt: skip
    assert found


@pytest.mark.parametrize("name", NAMES)
def test_inputs_are_determined_by_the_seed(name: str) -> None:
    fuzzed = target(name)
    seeds = list(fuzzed.seeds())
    assert seeds == list(fuzzed.seeds())
    made = [
        [seeded_engine.new_input(fuzzed.mutate, seeds, Random(number)) for number in range(20)]
        for _ in range(2)
    ]
    assert made[0] == made[1]
    assert len(set(made[0])) > 10


def test_each_finding_is_stored_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.fuzz.session.target", lambda _: Target(raises, lambda: ()))
    session = Session("any", tmp_path)
    for data in (b"a", b"b"):
        session.check(data)
    session.close()
    assert [path.read_bytes() for path in tmp_path.iterdir() if not path.suffix] == [b"a"]
