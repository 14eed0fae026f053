"""The clients on an asyncio event loop, without a thread, against Apache Kafka."""

import uuid

import pytest

from integration.harness.running_kafka import RunningKafka
from tests.support.clients.asyncio_clients import check_all_clients, run_without_threads


def test_all_clients_run_on_an_event_loop(
    kafka: RunningKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = f"asyncio-{uuid.uuid4().hex[:8]}"
    run_without_threads(
        lambda driver: check_all_clients(driver, kafka.bootstrap, topic), monkeypatch
    )
