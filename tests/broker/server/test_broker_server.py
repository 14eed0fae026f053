"""Start, steps and stop of a broker."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from kclient.broker.server.broker_config import BROKER_CONFIG
from kclient.broker.server.broker_server import BrokerServer
from kclient.common.errors import ConfigError, IllegalStateError
from kclient.network.system_runtime import system_runtime
from kclient.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kclient.protocol.messages.fetch import FetchResponse
from kclient.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from tests.support.clients.wire import Wire, fetch_request


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerServer]:
    config = BROKER_CONFIG.parse({"log.dir": str(tmp_path), "listeners": "127.0.0.1:0"})
    made = BrokerServer(config, system_runtime())
    made.start(threads=False)
    yield made
    made.stop()


def test_broker_without_threads_is_idle_between_steps(broker: BrokerServer) -> None:
    assert [t.name for t in threading.enumerate() if t.name.startswith("kclient-")] == []
    with Wire(broker.endpoint.address) as wire:
        sent = wire.send(ApiVersionsRequest(), 0)
        wire.socket.settimeout(0.1)
        with pytest.raises(TimeoutError):
            wire.receive_frame()
        for _ in range(4):
            broker.step(0.0)
        assert wire.receive(ApiVersionsResponse, 0)[0] == sent


def test_injected_clock_controls_time(broker: BrokerServer) -> None:
    now_ms = system_runtime().clock.monotonic_ms()
    with Wire(broker.endpoint.address) as wire:
        wire.send(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 4)
        for _ in range(4):
            broker.step(now_ms)
        wire.receive(MetadataResponse, 4)
        sent = wire.send(fetch_request("t", 0, max_wait_ms=50_000), 12)
        assert [broker.step(now_ms) for _ in range(4)][-1] > 0.0
        wire.socket.settimeout(0.05)
        with pytest.raises(TimeoutError):
            wire.receive_frame()
        for _ in range(3):
            broker.step(now_ms + 60_000)
        assert wire.receive(FetchResponse, 12)[0] == sent


def test_stopped_broker_rejects_step(broker: BrokerServer) -> None:
    broker.stop()
    with pytest.raises(IllegalStateError):
        broker.step(0.0)


def test_running_broker_cannot_be_started_again(broker: BrokerServer) -> None:
    with pytest.raises(IllegalStateError, match="is running already"):
        broker.start(threads=False)
    assert broker.is_running


def test_stop_is_idempotent_and_the_broker_starts_again(broker: BrokerServer) -> None:
    host = broker.endpoint.host
    broker.stop()
    broker.stop()
    assert not broker.is_running
    for read in (lambda: broker.endpoint, lambda: broker.services):
        with pytest.raises(IllegalStateError, match="the broker is not running"):
            read()
    broker.start(threads=False)
    assert broker.endpoint.host == host
    assert broker.endpoints == (broker.endpoint,)


def test_failed_start_releases_directory_and_ports(broker: BrokerServer, tmp_path: Path) -> None:
    taken = {"log.dir": str(tmp_path / "other"), "listeners": broker.bound[0].address}
    other = BrokerServer(BROKER_CONFIG.parse(taken), system_runtime())
    with pytest.raises(ConfigError, match="cannot listen on"):
        other.start()
    assert not other.is_running
    assert [t.name for t in threading.enumerate() if t.name.startswith("kclient-")] == []
    broker.stop()
    other.start(threads=False)  # the directory is not locked any more
    other.stop()
