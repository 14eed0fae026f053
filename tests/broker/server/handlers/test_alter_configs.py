"""Settings that are changed while the broker runs: responses, and effects."""

import logging
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from kclient import Producer
from kclient.protocol.messages.alter_configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResponse,
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
    IncrementalAlterConfigsResponse,
)
from kclient.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from kclient.record import CompressionType, Record, read_batches
from kclient.testing import EmbeddedCluster
from tests.support.checks.waiting import wait_until
from tests.support.clients.transactions import transactional_batch
from tests.support.clients.wire import Wire, batch, records_of

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
INVALID_CONFIG, INVALID_REQUEST = 40, 42
TOO_LARGE = 10
_STATIC = "Cannot update these configs dynamically: "
_OF_LISTENER = f"{_STATIC}[listener.name.a.ssl.keystore.type]"
_PER_LISTENER = (
    "These security configs can be dynamically updated only per-listener using the listener "
    "prefix: [ssl.truststore.type]"
)

Change = tuple[str, int, str | None]


@pytest.fixture
def own(tmp_path: Path) -> Iterator[EmbeddedCluster]:
    """A broker whose own settings a test changes."""
    with EmbeddedCluster(data_dir=tmp_path) as running:
        yield running


def alter(
    wire: Wire, *wanted: tuple[int, str, list[Change]], validate_only: bool = False
) -> list[tuple[int, str | None]]:
    resources = [
        IncrementalAlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=[
                IncrementalAlterableConfig(name=key, config_operation=operation, value=value)
                for key, operation, value in changes
            ],
        )
        for kind, name, changes in wanted
    ]
    request = IncrementalAlterConfigsRequest(resources=resources, validate_only=validate_only)
    response = wire.ask(request, 1, IncrementalAlterConfigsResponse)
    assert [(each.resource_type, each.resource_name) for each in response.responses] == [
        (kind, name) for kind, name, _ in wanted
    ]
    return [(each.error_code, each.error_message) for each in response.responses]


def source_of(wire: Wire, kind: int, name: str, key: str) -> tuple[str | None, int]:
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=[key]
    )
    response = wire.ask(DescribeConfigsRequest(resources=[resource]), 4, DescribeConfigsResponse)
    (entry,) = response.results[0].configs
    return entry.value, entry.config_source


def test_settings_of_topics_take_effect_at_once(wire: Wire, topic: str) -> None:
    large = batch([bytes(2000)])
    assert wire.produce(topic, large).error_code == 0
    assert alter(wire, (TOPIC, topic, [("max.message.bytes", SET, "1000")])) == [(0, None)]
    assert wire.produce(topic, large).error_code == TOO_LARGE
    assert source_of(wire, TOPIC, topic, "max.message.bytes") == ("1000", 1)
    assert alter(wire, (TOPIC, topic, [("max.message.bytes", DELETE, None)])) == [(0, None)]
    assert wire.produce(topic, large).error_code == 0


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("cleanup.policy", "compact", 87),  # a record without a key
        ("message.timestamp.before.max.ms", "1000", 32),
        ("max.message.bytes", "10", TOO_LARGE),
    ],
)
def test_appends_are_checked_by_the_new_settings(
    wire: Wire, topic: str, name: str, value: str, code: int
) -> None:
    assert wire.produce(topic, batch([b"a"])).error_code == 0
    assert alter(wire, (TOPIC, topic, [(name, SET, value)])) == [(0, None)]
    assert wire.produce(topic, batch([b"a"])).error_code == code
    assert alter(wire, (TOPIC, topic, [(name, DELETE, None)])) == [(0, None)]
    assert wire.produce(topic, batch([b"a"])).error_code == 0


def test_batches_are_stored_by_the_new_settings(wire: Wire, topic: str) -> None:
    changes: list[Change] = [
        ("message.timestamp.type", SET, "LogAppendTime"),
        ("compression.type", SET, "gzip"),
    ]
    assert wire.produce(topic, batch([b"a"])).log_append_time_ms == -1
    assert alter(wire, (TOPIC, topic, changes)) == [(0, None)]
    assert wire.produce(topic, batch([b"a"])).log_append_time_ms > 0
    stored = wire.fetch(topic, 1).records
    assert isinstance(stored, bytes | memoryview)
    assert [each.compression_type for each in read_batches(stored)] == [CompressionType.GZIP]


def test_settings_are_changed_through_any_broker() -> None:
    """The active controller is one of them; the others send it what they have checked."""
    with EmbeddedCluster(brokers=3) as cluster:
        wires = {
            number: Wire(address)
            for number, address in enumerate(cluster.bootstrap_servers.split(","), start=1)
        }
        wires[1].create_topic("t")
        for number, wire in wires.items():
            value = str(1000 + number)
            size: Change = ("max.message.bytes", SET, value)
            found = alter(
                wire,
                (TOPIC, "t", [size]),
                (BROKER, str(number), [("log.retention.ms", SET, value)]),
                (TOPIC, "absent", [size]),
                (BROKER, "", [("log.segment.bytes", SET, str(2_000_000 + number))]),
            )
            assert [code for code, _ in found] == [0, 0, 3, 0]
            assert source_of(wire, TOPIC, "t", "max.message.bytes") == (value, 1)
            assert source_of(wire, BROKER, str(number), "log.retention.ms") == (value, 2)
            other = str(number % 3 + 1)
            assert alter(wire, (BROKER, other, [("log.retention.ms", SET, "5")]))[0][0] == 42
        for number, wire in wires.items():
            wait_until(partial(has_last_segment_size, wire), f"broker {number} has the value", 20)
            assert source_of(wire, TOPIC, "t", "retention.ms") == (str(1000 + number), 2)
            wire.close()


def has_last_segment_size(wire: Wire) -> bool:
    return source_of(wire, TOPIC, "t", "segment.bytes") == ("2000003", 3)


def test_replaced_settings_lose_the_values_that_are_not_named(wire: Wire, topic: str) -> None:
    alter(wire, (TOPIC, topic, [("retention.ms", SET, "7"), ("max.message.bytes", SET, "1000")]))
    configs = [AlterableConfig(name="retention.ms", value="8")]
    resource = AlterConfigsResource(resource_type=TOPIC, resource_name=topic, configs=configs)
    for validate_only, expected in ((True, ("7", 1)), (False, ("8", 1))):
        request = AlterConfigsRequest(resources=[resource], validate_only=validate_only)
        (result,) = wire.ask(request, 2, AlterConfigsResponse).responses
        assert (result.error_code, result.error_message) == (0, None)
        assert source_of(wire, TOPIC, topic, "retention.ms") == expected
    assert source_of(wire, TOPIC, topic, "max.message.bytes") == ("1048588", 5)


def test_refused_resources_do_not_affect_the_others(wire: Wire, topic: str) -> None:
    valid: Change = ("retention.ms", SET, "5")
    found = alter(
        wire,
        (TOPIC, "absent", [valid]),
        (TOPIC, topic, [valid]),
        (BROKER, "9", [valid]),
        (64, "x", [valid]),
        (TOPIC, "twice", [valid]),
        (TOPIC, "twice", [valid]),
        (GROUP, "g", [valid, valid]),
        (METRICS, "m", [("match", SET, None)]),
    )
    codes = [3, 0, *[INVALID_REQUEST] * 6]
    assert [code for code, _ in found] == codes
    assert all((text is None) == (code == 0) for code, text in found)
    assert source_of(wire, TOPIC, topic, "retention.ms") == ("5", 1)


def test_settings_of_brokers_are_defaults_of_topics(own: EmbeddedCluster) -> None:
    large = batch([bytes(2000)])
    with Wire(own.bootstrap_servers) as wire:
        wire.create_topic("before")
        for name, value, source in (("", "1000", 3), ("1", "900", 2)):
            assert alter(wire, (BROKER, name, [("message.max.bytes", SET, value)])) == [(0, None)]
            wire.create_topic(f"after{name}")
            for topic in ("before", f"after{name}"):
                assert wire.produce(topic, large).error_code == TOO_LARGE
                assert source_of(wire, TOPIC, topic, "max.message.bytes") == (value, source)
            assert source_of(wire, BROKER, "1", "message.max.bytes") == (value, source)
    own.stop()
    own.start()
    with Wire(own.bootstrap_servers) as wire:
        assert wire.produce("before", large).error_code == TOO_LARGE
        for name in ("1", ""):
            assert alter(wire, (BROKER, name, [("message.max.bytes", DELETE, None)])) == [(0, None)]
        assert wire.produce("before", large).error_code == 0


@pytest.mark.parametrize(
    ("name", "change", "text"),
    [
        ("1", ("log.dirs", SET, "d"), f"{_STATIC}[log.dirs]"),
        ("", ("num.io.threads", SET, "4"), f"{_STATIC}[num.io.threads]"),
        ("1", ("ssl.truststore.type", SET, "JKS"), _PER_LISTENER),
        ("1", ("listener.name.a.ssl.keystore.type", SET, "PEM"), _OF_LISTENER),
        (
            "1",
            ("message.max.bytes", SET, "x"),
            "Invalid value x for configuration message.max.bytes: Not a number of type INT",
        ),
    ],
)
def test_static_settings_of_brokers_are_refused(
    wire: Wire, name: str, change: Change, text: str
) -> None:
    assert alter(wire, (BROKER, name, [change])) == [(INVALID_REQUEST, text)]


def test_limits_of_connections_change(own: EmbeddedCluster) -> None:
    with Wire(own.bootstrap_servers) as wire:
        assert alter(wire, (BROKER, "1", [("max.connections.per.ip", SET, "1")])) == [(0, None)]
        with Wire(own.bootstrap_servers) as refused:
            assert refused.is_closed_by_peer()
        assert alter(wire, (BROKER, "1", [("max.connections.per.ip", DELETE, None)])) == [(0, None)]
        with Wire(own.bootstrap_servers) as accepted:
            assert accepted.metadata("t").topics


def test_verification_of_transactions_can_be_disabled(own: EmbeddedCluster) -> None:
    name = "transaction.partition.verification.enable"
    records = transactional_batch([b"t"], 900_000)
    with Wire(own.bootstrap_servers) as wire:
        wire.create_topic("t")
        assert wire.produce("t", records, transactional_id="x").error_code
        assert alter(wire, (BROKER, "", [(name, SET, "false")])) == [(0, None)]
        assert wire.produce("t", records, transactional_id="x").error_code == 0


def test_pause_of_the_cleaner_changes(own: EmbeddedCluster) -> None:
    with Wire(own.bootstrap_servers) as wire:
        wire.create_topic("t", cleanup_policy="compact", segment_bytes=str(1 << 20))
        with Producer(bootstrap_servers=own.bootstrap_servers) as producer:
            for _ in range(3):
                producer.send("t", bytes(900_000), key=b"k").result(10)
        assert first_segment(wire, "t")
        alter(wire, (TOPIC, "t", [("min.cleanable.dirty.ratio", SET, "0.01")]))
        alter(wire, (BROKER, "", [("log.cleaner.backoff.ms", SET, "10")]))
        wait_until(lambda: not first_segment(wire, "t"), "the log is compacted", 10)


def first_segment(wire: Wire, topic: str) -> list[Record]:
    return records_of(wire.fetch(topic, 0, max_bytes=1 << 23).records)


def test_retention_deletes_segments_after_a_change(own: EmbeddedCluster) -> None:
    own.stop()
    with (
        EmbeddedCluster(
            data_dir=own.data_dir, config={"log.retention.check.interval.ms": 50}
        ) as running,
        Wire(running.bootstrap_servers) as wire,
    ):
        wire.create_topic("t", segment_bytes=str(1 << 20), retention_ms="-1")
        for _ in range(3):
            wire.produce("t", batch([bytes(900_000)]))
        assert wire.fetch("t", 0).error_code == 0
        alter(wire, (TOPIC, "t", [("retention.bytes", SET, "1")]))
        wait_until(lambda: wire.fetch("t", 0).error_code == 1, "old segments are deleted", 20)


def test_levels_of_loggers_are_described_and_changed(wire: Wire) -> None:
    name = "kclient.broker.log.log_cleaner"
    logger = logging.getLogger(name)
    try:
        assert alter(wire, (LOGGER, "1", [(name, SET, "DEBUG")]), validate_only=True) == [(0, None)]
        assert logger.level == logging.NOTSET
        assert alter(wire, (LOGGER, "1", [(name, SET, "DEBUG")])) == [(0, None)]
        assert logger.level == logging.DEBUG
        assert source_of(wire, LOGGER, "1", name) == ("DEBUG", 6)
        assert alter(wire, (LOGGER, "1", [(name, DELETE, None)])) == [(0, None)]
        assert logger.level == logging.NOTSET
    finally:
        logger.setLevel(logging.NOTSET)


@pytest.mark.parametrize(
    ("node", "change", "code"),
    [
        ("9", ("root", SET, "INFO"), INVALID_REQUEST),
        ("", ("root", SET, "INFO"), INVALID_REQUEST),
        ("1", ("root", DELETE, None), INVALID_REQUEST),
        ("1", ("root", APPEND, "INFO"), INVALID_REQUEST),
        ("1", ("root", SET, "LOUD"), INVALID_CONFIG),
        ("1", ("absent", SET, "INFO"), INVALID_CONFIG),
    ],
)
def test_invalid_changes_of_loggers_are_refused(
    wire: Wire, node: str, change: Change, code: int
) -> None:
    assert [found for found, _ in alter(wire, (LOGGER, node, [change]))] == [code]


def test_levels_of_loggers_are_restored_when_the_broker_ends() -> None:
    loggers = [logging.getLogger(name) for name in ("kclient", "kclient.broker.log.log_cleaner")]
    before = [logger.level for logger in loggers]
    with EmbeddedCluster() as cluster, Wire(cluster.bootstrap_servers) as connected:
        for name, level in (("root", "FATAL"), (loggers[1].name, "DEBUG")):
            assert alter(connected, (LOGGER, "1", [(name, SET, level)])) == [(0, None)]
        assert [logger.level for logger in loggers] == [logging.CRITICAL, logging.DEBUG]
    assert [logger.level for logger in loggers] == before
