import logging
from typing import Any

import pytest

from kclient import Producer
from kclient.common.errors import ConfigError
from kclient.producer.partitioner import murmur2_partition, murmur3_partition
from kclient.producer.producer_config import PRODUCER_CONFIG, ProducerConfig
from kclient.record import CompressionType

SERVERS = {"bootstrap_servers": "localhost:9092"}


def parse(**options: object) -> ProducerConfig:
    return PRODUCER_CONFIG.parse(SERVERS | options)


# Defaults of Apache Kafka 4.3's producer.
async def coroutine(*_: object) -> int:
    return 0


@pytest.mark.parametrize(
    ("key", "default"),
    [
        ("acks", -1),
        ("batch.size", 262144),
        ("buffer.memory", 33554432),
        ("compression.gzip.level", -1),
        ("compression.lz4.level", 9),
        ("compression.type", CompressionType.NONE),
        ("compression.zstd.level", 3),
        ("connections.max.idle.ms", 540000),
        ("delivery.timeout.ms", 120000),
        ("enable.idempotence", True),
        ("linger.ms", 5),
        ("max.block.ms", 60000),
        ("max.in.flight.requests.per.connection", 5),
        ("max.request.size", 1048576),
        ("metadata.max.age.ms", 300000),
        ("metadata.max.idle.ms", 300000),
        ("metrics.num.samples", 2),
        ("metrics.sample.window.ms", 30000),
        ("partitioner.adaptive.partitioning.enable", True),
        ("partitioner.availability.timeout.ms", 0),
        ("partitioner.class", None),
        ("partitioner.ignore.keys", False),
        ("receive.buffer.bytes", 32768),
        ("reconnect.backoff.max.ms", 1000),
        ("reconnect.backoff.ms", 50),
        ("request.timeout.ms", 30000),
        ("retries", 2147483647),
        ("retry.backoff.max.ms", 1000),
        ("retry.backoff.ms", 100),
    ],
)
def test_defaults_are_those_of_the_java_client(key: str, default: object) -> None:
    assert PRODUCER_CONFIG.keys[key].default == default


def test_dotted_names_in_a_dict() -> None:
    config = PRODUCER_CONFIG.parse({"bootstrap.servers": "h:1", "linger.ms": 20, "acks": "all"})
    assert config.linger_ms == 20


class SendsOnly:
    def on_send(self, record: object) -> object:
        return record


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"acks": 2}, r"acks: got 2 \(int\), expected one of .*'all'"),
        ({"acks": "ALL "}, r"acks: got 'ALL '"),
        ({"acks": True}, r"acks: got True"),
        ({"compression_type": "xz"}, r"compression_type: got 'xz' .*'zstd'"),
        ({"compression_gzip_level": 10}, r"compression_gzip_level: got 10 .* 1 to 9"),
        ({"compression_zstd_level": 23}, r"compression_zstd_level: got 23"),
        ({"compression_zstd_level": "23"}, r"compression_zstd_level: got '23'"),
        ({"compression_zstd_level": "fast"}, r"got 'fast' \(str\), expected a whole number .* 22$"),
        ({"linger_ms": -1}, r"linger_ms: got -1 .*>= 0"),
        ({"linger_ms": float("nan")}, r"linger_ms: got nan"),
        ({"linger_ms": float("inf")}, r"linger_ms: got inf"),
        ({"request_timeout_ms": "soon"}, r"request_timeout_ms: got 'soon'"),
        ({"max_in_flight_requests_per_connection": 0}, r"expected a whole number >= 1"),
        ({"bootstrap_server": "h:1"}, r"did you mean 'bootstrap_servers'"),
        ({"linger_m": 1}, r"did you mean 'linger_ms'"),
        ({"queue.buffering.max.ms": 1}, r"here it is linger\.ms"),
        ({"value_serializer": 3}, r"value_serializer: got 3 .*callable"),
        ({"partitioner_class": "org.apache.X"}, r"pass the callable itself"),
        ({"partitioner_class": 7}, r"partitioner_class: got 7"),
        ({"partitioner_class": coroutine}, r"partitioner_class: got .*it is a coroutine function"),
        ({"interceptor_classes": "a.b"}, r"interceptor_classes: got 'a\.b'"),
        ({"interceptor_classes": ["a.b"]}, r"pass the class itself or an object"),
        ({"interceptor_classes": [object()]}, r"has no on_send"),
        ({"interceptor_classes": [object]}, r"has no on_send"),
        ({"interceptor_classes": [SendsOnly()]}, r"has no on_acknowledgement"),
        ({"metric_reporters": ["x"]}, r"metric_reporters: .*read metrics with \.metrics\(\)"),
        (
            {"sasl_jaas_config": "x"},
            r"sasl_jaas_config: got a secret value, .*; it does not end with ';'",
        ),
        ({"config_providers": "file"}, r"config_providers: .*resolve values before"),
    ],
)
def test_errors_name_the_expected_form(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        parse(**options)


def test_errors_do_not_show_secrets() -> None:
    with pytest.raises(ConfigError) as caught:
        parse(ssl_key_password="hunter2")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (
            {"enable_idempotence": True, "acks": 1},
            r"acks: got 1, expected 'all' with enable_idempotence=True",
        ),
        (
            {"enable_idempotence": True, "max_in_flight_requests_per_connection": 6},
            r"max_in_flight_requests_per_connection: got 6, expected at most 5 with enable_idemp",
        ),
        ({"enable_idempotence": True, "retries": 0}, r"retries: got 0"),
        (
            {"delivery_timeout_ms": 10_000, "linger_ms": 5, "request_timeout_ms": 10_000},
            r"got 10000, expected at least linger_ms \+ request_timeout_ms = 5 \+ 10000",
        ),
    ],
)
def test_contradicting_options_are_named(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        parse(**options)


@pytest.mark.parametrize(
    "options", [{"acks": 0}, {"max_in_flight_requests_per_connection": 6}, {"retries": 0}]
)
def test_default_idempotence_is_disabled_by_other_options(options: dict[str, Any]) -> None:
    assert not parse(**options).enable_idempotence
    assert parse().enable_idempotence


def test_default_delivery_timeout_covers_linger_and_request() -> None:
    config = parse(linger_ms=100_000, request_timeout_ms=50_000)
    assert config.delivery_timeout_ms == 150_000


def test_batch_is_never_larger_than_a_request() -> None:
    assert parse(batch_size=5_000_000).batch_size == 1_048_576
    assert parse(batch_size=0).batch_size == 1


def test_compression_level_is_that_of_the_codec() -> None:
    config = parse(compression_type="ZSTD", compression_zstd_level=7, compression_gzip_level=2)
    assert config.compression_type is CompressionType.ZSTD
    assert config.compression_level == 7
    assert parse(compression_type="snappy").compression_level is None
    assert parse(compression_type="lz4", compression_lz4_level="12").compression_level == 12


def test_partitioners_by_name() -> None:
    assert parse(partitioner_class="murmur2").partitioner_class is murmur2_partition
    assert parse(partitioner_class="murmur3").partitioner_class is murmur3_partition
    assert parse(partitioner_class=None).partitioner_class is None


def test_batch_is_at_most_a_request_and_the_buffer_memory() -> None:
    assert parse(buffer_memory=9_999, batch_size=10_000).batch_size == 9_999
    assert parse(buffer_memory=10_000, batch_size=10_000).batch_size == 10_000
    assert parse(buffer_memory=9_999, batch_size=10_000, max_request_size=5_000).batch_size == 5_000


def test_disabled_idempotence_is_logged_with_the_client(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "kclient")
    Producer(
        bootstrap_servers="h:1", client_id="billing", max_in_flight_requests_per_connection=10
    ).close(0)
    (line,) = [each.getMessage() for each in caplog.records if "idempotence" in each.getMessage()]
    assert line.startswith("[Producer clientId=billing] idempotence is off: max_in_flight")
