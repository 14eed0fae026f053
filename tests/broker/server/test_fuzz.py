"""Requests that are nearly right: refused or answered, never the cause of unexpected errors."""

import logging
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kclient.broker.network.request_channel import Request, Response
from kclient.broker.server.api_table import API_TABLE, version_spans
from kclient.broker.server.api_version_manager import ApiVersionManager
from kclient.broker.server.broker_config import BrokerConfig
from kclient.broker.server.broker_server import BrokerServer
from kclient.broker.server.kafka_apis import KafkaApis
from kclient.broker.server.request_parser import RequestParser
from kclient.common.errors import KafkaError
from kclient.network.memory_pool import UnlimitedMemoryPool
from kclient.network.network_receive import NetworkReceive
from kclient.network.system_runtime import system_runtime
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.headers import encode_request
from kclient.protocol.messages.produce import ProduceRequest
from tests.support.requests import filled_request
from tests.support.wire import batch, joined

TOPIC = "fuzzed"
SLOW = {ApiKey.CREATE_TOPICS, ApiKey.CREATE_PARTITIONS}  # thousands of partitions in a few bytes
VERSIONS = [(key, version) for key, api in sorted(API_TABLE.items()) for version in api.versions]


class Sink:
    def __init__(self) -> None:
        self.responses: list[Response] = []

    def enqueue_response(self, response: Response) -> None:
        self.responses.append(response)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerServer]:
    directory: Path = tmp_path_factory.mktemp("fuzz")
    config = BrokerConfig(
        {
            "log.dir": str(directory),
            "listeners": "127.0.0.1:0",
            "auto.create.topics.enable": False,
            "delete.topic.enable": False,
            "offsets.topic.num.partitions": 1,
        }
    )
    made = BrokerServer(config, system_runtime())
    made.start(threads=False)
    made.services.topic_creation.create(TOPIC)
    made.services.topic_creation.create("__consumer_offsets")
    yield made
    made.stop()


def frame(broker: BrokerServer, key: ApiKey, version: int) -> bytes:
    topic_id = broker.services.controller.image.topics[TOPIC].topic_id
    request = filled_request(API_TABLE[key].request_type, version, TOPIC, topic_id)
    if isinstance(request, ProduceRequest):
        request.topic_data[0].partition_data[0].index = 0
        request.topic_data[0].partition_data[0].records = batch([b"a", b"b"])
    return joined(encode_request(request, version, 1, "fuzz"))


def handle(broker: BrokerServer, data: bytes) -> list[Response]:
    """Let the broker handle a frame; return its answers."""
    sink = Sink()
    receive = NetworkReceive("fuzz", len(data), UnlimitedMemoryPool())
    receive.payload = memoryview(bytearray(data))
    parser = RequestParser(ApiVersionManager(version_spans()))
    request: Request = parser.parse(sink, receive, "127.0.0.1", 0.0)
    if request.header.api_key not in SLOW:
        KafkaApis(broker.services, API_TABLE).handle(request)
    return sink.responses


@pytest.mark.parametrize(("key", "version"), VERSIONS, ids=lambda value: str(int(value)))
def test_the_frames_are_right_before_they_are_spoilt(
    broker: BrokerServer, key: ApiKey, version: int
) -> None:
    assert len(handle(broker, frame(broker, key, version))) <= 1


@pytest.mark.fault("B17")
@settings(
    max_examples=1500,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_nearly_right(
    broker: BrokerServer, caplog: pytest.LogCaptureFixture, data: st.DataObject
) -> None:
    caplog.set_level(logging.ERROR)
    key, version = data.draw(st.sampled_from(VERSIONS))
    spoilt = bytearray(frame(broker, key, version))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(8, len(spoilt) - 1))
        spoilt[place] = data.draw(
            st.sampled_from([0, 1, 2, 0x7F, 0x80, 0xFF]) | st.integers(0, 255)
        )
    if data.draw(st.booleans()):
        del spoilt[data.draw(st.integers(8, len(spoilt))) :]
    with suppress(KafkaError):
        handle(broker, bytes(spoilt))
    assert caplog.records == [], (key, version, bytes(spoilt).hex())
