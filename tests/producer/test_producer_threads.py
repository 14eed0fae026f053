"""Many threads share one producer: each keeps its order, and none blocks permanently."""

import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kclient import Producer
from tests.support.clients.foreign import ForeignRecord


@pytest.mark.fault("W23")
@pytest.mark.parametrize("environment", [{}, {"KCLIENT_PURE_PYTHON": "1"}], ids=["", "reference"])
def test_threads_with_a_minimal_switch_interval(environment: dict[str, str]) -> None:
    ended = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-m", "tests.support.checks.thread_stress"],
        cwd=Path(__file__).parents[2], env={**os.environ, **environment},
        capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == ""


def test_topics_that_are_dropped_at_once_lose_no_record(
    make: Callable[..., Producer], stored: Callable[[str], list[ForeignRecord]],
    topic: str, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr("kclient.producer.sender._TOPIC_USE_INTERVAL_MS", 0.0)
    monkeypatch.setattr("kclient.client.client_metadata.ProducerMetadata.uses", lambda *_: False)
    monkeypatch.setattr("kclient.producer.transaction_manager.MAX_IDLE_SEQUENCES", 1)
    producer = make(batch_size=200, linger_ms=0)
    topics = [f"{topic}-{number}" for number in range(3)]

    def send(thread: int) -> None:
        for number in range(200):
            producer.send(topics[number % 3], b"%d %d" % (thread, number), partition=thread % 3)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(send, range(4)))
    producer.flush(30)
    for number, each in enumerate(topics):
        by_thread: dict[bytes, list[int]] = {}
        for record in stored(each):
            thread, sent = (record.value or b"").split()
            by_thread.setdefault(thread, []).append(int(sent))
        assert by_thread == {b"%d" % thread: list(range(number, 200, 3)) for thread in range(4)}
