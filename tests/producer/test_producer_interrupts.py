"""Ctrl-C in send, flush, result and close: in every wait, in user code, and at random times."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kclient import Producer
from kclient.producer import ProducerInterceptor, ProducerRecord
from kclient.record import IMPLEMENTATION
from tests.support.clients.foreign import ForeignRecord

PROGRAM = "tests.support.processes.interrupt_trials"
PURE = {"KCLIENT_PURE_PYTHON": "1"}
ROOT = Path(__file__).parents[2]


def run_trials(environment: dict[str, str], *arguments: str) -> dict[str, int]:
    """Runs trials in a process of their own; returns how often each call was interrupted."""
    ended = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-m", PROGRAM, *arguments],
        cwd=ROOT, env={**os.environ, **environment},
        capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)
    pure = bool(environment) or IMPLEMENTATION != "compiled"
    assert found["hot path"].endswith("reference" if pure else "_speed")
    struck: dict[str, int] = found["struck"]
    return struck


@pytest.mark.fault("W18")
@pytest.mark.parametrize("environment", [{}, PURE], ids=["compiled", "reference"])
def test_ctrl_c_in_every_wait_keeps_the_producer_usable(
    environment: dict[str, str],
) -> None:
    places = run_trials(environment)
    assert sorted(places) == [
        "close",
        "flush",
        "result",
        "send into full memory",
        "send to a new topic",
    ]
    assert min(places.values()) >= 1


@pytest.mark.fault("W18")
@pytest.mark.parametrize("environment", [{}, PURE], ids=["compiled", "reference"])
def test_random_signals_keep_the_producer_usable(environment: dict[str, str]) -> None:
    struck = run_trials(environment, "1", "150")
    assert struck.pop("late") == 0
    assert struck.pop("too late", 0) < 90
    assert min(struck.values()) >= 6


def interrupt(*_: object) -> None:
    signal.raise_signal(signal.SIGINT)


@pytest.mark.fault("W18")
def test_ctrl_c_in_code_of_the_application_ends_the_call(
    make: Callable[..., Producer], topic: str, stored: Callable[[str], list[ForeignRecord]]
) -> None:
    class Interceptor(ProducerInterceptor):
        def on_send(self, record: ProducerRecord) -> ProducerRecord:
            interrupt()
            return record

    def partitioner(topic: str, key: bytes | None, count: int) -> int:
        interrupt()
        return 0

    def serializer(value: object) -> bytes:
        interrupt()
        return b"serialized"

    for options in (
        {"interceptor_classes": [Interceptor()]},
        {"partitioner_class": partitioner},
        {"value_serializer": serializer},
    ):
        producer = make(**options)
        with pytest.raises(KeyboardInterrupt):
            producer.send(topic, b"x")
        with pytest.raises(KeyboardInterrupt):
            producer.send_many(topic, [b"x", b"y"])
        producer.flush(10)
    assert stored(topic) == []


@pytest.mark.fault("W18")
def test_call_that_does_not_wait_completes_before_ctrl_c_takes_effect(
    make: Callable[..., Producer],
    topic: str,
    stored: Callable[[str], list[ForeignRecord]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    producer = make(linger_ms=60_000)
    producer.partitions_for(topic)
    accumulator = producer._core._accumulator
    wakeup = accumulator._wakeup

    def interrupted_wakeup() -> None:
        interrupt()  # the batch is open
        wakeup()

    for call in (
        lambda: producer.send(topic, b"sent", partition=0),
        lambda: producer.send_many(topic, [b"first", b"second"], partition=1),
    ):
        monkeypatch.setattr(accumulator, "_wakeup", interrupted_wakeup)
        with pytest.raises(KeyboardInterrupt):
            call()
        monkeypatch.undo()
        producer.flush(10)  # the sender is woken only for the first batch that lingers
    assert sorted(each.value or b"" for each in stored(topic)) == [b"first", b"second", b"sent"]
