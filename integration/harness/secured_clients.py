"""Clients of secured listeners, Java's tools and franz-go among them, on one small interface."""

import gc
import os
import subprocess
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from uuid import uuid4

import confluent_kafka
from kafka import KafkaConsumer, KafkaProducer

from integration.conftest import ToolsFor
from integration.harness.go_programs import FRANZ_GO, franz_go_program
from tests.support.checks.waiting import HarnessError
from tests.support.clients.foreign import ForeignRecord
from tests.support.clients.foreign_security import (
    options_of_java,
    options_of_kafka_python,
    options_of_librdkafka,
    secured_foreign_client,
)

JAVA = "java"
_CONFLUENT, _KAFKA_PYTHON = "confluent-kafka", "kafka-python"
CLIENTS = (JAVA, FRANZ_GO, _CONFLUENT, _KAFKA_PYTHON, "aiokafka")
RENEWING = (JAVA, FRANZ_GO, _CONFLUENT, _KAFKA_PYTHON)
"""Clients that renew their sessions (KIP-368); aiokafka 0.14 does not."""

_OAUTHBEARER = "org.apache.kafka.common.security.oauthbearer"
_PER_SECOND = 100
_PATIENCE_S = 20.0

Options = Mapping[str, Any]


class Traffic(NamedTuple):
    """Values that a client has written, and those that it has read meanwhile."""

    written: list[bytes]
    read: list[bytes]


class SecuredClient(Protocol):
    """Operations of each client; a HarnessError has the text of the client's own error."""

    def fail(self, topic: str) -> None:
        """Send a request of a client that the broker refuses."""

    def write(self, topic: str, values: Sequence[bytes]) -> None:
        """Write values."""

    def read(self, topic: str, count: int, group: str) -> list[bytes]:
        """Read values as a member of a group, and commit."""

    def write_and_read(self, topic: str, seconds: int) -> Traffic:
        """Write and read for a time, with one producer and one member of a group."""


def secured_client(name: str, options: Options, tools_for: ToolsFor) -> SecuredClient:
    """Return a client.

    Args:
        name: One of `CLIENTS`.
        options: Options of one of our clients, with the stores as files.
        tools_for: Fixture of the Java tools.
    """
    if name == JAVA:
        return _JavaClient(options, tools_for)
    if name == FRANZ_GO:
        return _FranzGoClient(options)
    return _PythonClient(name, options)


class _JavaClient:
    def __init__(self, options: Options, tools_for: ToolsFor) -> None:
        properties = options_of_java(options)
        jvm_options: list[str] = []
        if "sasl_token_provider" in options:
            more, jvm_options = _token_of_java(options)
            properties |= more
        self._tools = tools_for(options["bootstrap_servers"], properties, jvm_options=jvm_options)

    def fail(self, topic: str) -> None:
        self._tools.create_topic(topic)  # the console tools only log their errors

    def write(self, topic: str, values: Sequence[bytes]) -> None:
        self._tools.produce(topic, [ForeignRecord(value) for value in values])

    def read(self, topic: str, count: int, group: str) -> list[bytes]:
        return [one.value or b"" for one in self._tools.consume(topic, count, group=group)]

    def write_and_read(self, topic: str, seconds: int) -> Traffic:
        count = seconds * _PER_SECOND
        consumer = self._tools.verifiable_consumer(topic, topic)
        consumer.await_events("partitions_assigned")
        producer = self._tools.verifiable_producer(topic, count, per_second=_PER_SECOND)
        producer.await_events("tool_data", timeout=seconds + _PATIENCE_S)
        consumer.await_events("record_data", lambda events: len(events) >= count)
        producer.stop()
        consumer.stop()
        return Traffic(
            [str(event["value"]).encode() for event in producer.events("producer_send_success")],
            [str(event["value"]).encode() for event in consumer.events("record_data")],
        )


def _token_of_java(options: Options) -> tuple[dict[str, str], list[str]]:
    """Return the properties and JVM options for a token, in a file next to the trust store."""
    file = Path(options["ssl_truststore_location"]).with_name(f"{uuid4()}.jwt")
    file.write_text(options["sasl_token_provider"]()[0])
    properties = {
        "sasl.oauthbearer.token.endpoint.url": file.as_uri(),
        "sasl.oauthbearer.jwt.retriever.class": f"{_OAUTHBEARER}.FileJwtRetriever",
        "sasl.login.callback.handler.class": f"{_OAUTHBEARER}.OAuthBearerLoginCallbackHandler",
        "sasl.jaas.config": f"{_OAUTHBEARER}.OAuthBearerLoginModule required;",
    }
    allowed = {"urls": file.as_uri(), "files": file}
    return properties, [
        f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.{name}={value}"
        for name, value in allowed.items()
    ]


class _FranzGoClient:
    def __init__(self, options: Options) -> None:
        provider = options.get("sasl_token_provider")
        self._secret = provider()[0] if provider else options.get("sasl_password", "")
        names = {
            "bootstrap": "bootstrap_servers",
            "ca": "ssl_truststore_location",
            "store": "ssl_keystore_location",
            "mechanism": "sasl_mechanism",
            "user": "sasl_username",
        }
        self._arguments = [
            f"-{name}={options[ours]}" for name, ours in names.items() if ours in options
        ]

    def fail(self, topic: str) -> None:
        self.write(topic, [b"refused"])

    def write(self, topic: str, values: Sequence[bytes]) -> None:
        self._run("produce", topic, stdin=b"\n".join(values))

    def read(self, topic: str, count: int, group: str) -> list[bytes]:
        return self._run("consume", topic, f"-group={group}", f"-count={count}")

    def write_and_read(self, topic: str, seconds: int) -> Traffic:
        *read, sent = self._run("renew", topic, f"-group={topic}", f"-count={seconds}")
        count = int(sent.removeprefix(b"sent "))
        return Traffic(
            [b"%d" % number for number in range(count)],
            [line.removeprefix(b"read ") for line in read],
        )

    def _run(self, mode: str, topic: str, *arguments: str, stdin: bytes = b"") -> list[bytes]:
        program = str(franz_go_program("secured"))
        done = subprocess.run(
            [program, f"-mode={mode}", f"-topic={topic}", *self._arguments, *arguments],
            input=stdin,
            capture_output=True,
            check=False,
            timeout=60,
            env={**os.environ, "KAFKA_SECRET": self._secret},
        )
        if done.returncode:
            raise HarnessError(done.stderr.decode())
        return done.stdout.splitlines()


class _PythonClient:
    def __init__(self, name: str, options: Options) -> None:
        self._name = name
        self._options = options
        self._errors: list[object] = []
        native: dict[str, Any] = {}
        if name == _CONFLUENT:  # it reports causes to this function alone
            native = {"error_cb": self._errors.append, "delivery.timeout.ms": 1_500}
        elif name == _KAFKA_PYTHON:
            native = {"bootstrap_timeout_ms": 1_500}
        self._client = secured_foreign_client(name, options, native)

    def fail(self, topic: str) -> None:
        failure = ""
        try:
            self.write(topic, [b"refused"])
        except Exception as error:  # noqa: BLE001 (those of each client)
            failure = f"{error!r} {self._errors[:3]}"
        if failure:
            with warnings.catch_warnings():  # kafka-python leaves sockets if it cannot start
                warnings.simplefilter("ignore", ResourceWarning)
                gc.collect()
            raise HarnessError(failure)

    def write(self, topic: str, values: Sequence[bytes]) -> None:
        self._client.produce(topic, [ForeignRecord(value) for value in values])

    def read(self, topic: str, count: int, group: str) -> list[bytes]:
        return [one.value or b"" for one in self._client.consume(topic, count, group=group)]

    def write_and_read(self, topic: str, seconds: int) -> Traffic:
        if self._name == _CONFLUENT:
            return _by_confluent(options_of_librdkafka(self._options), topic, seconds)
        return _by_kafka_python(options_of_kafka_python(self._options), topic, seconds)


def _by_confluent(options: Options, topic: str, seconds: int) -> Traffic:
    producer = confluent_kafka.Producer({**options, "linger.ms": 0, "enable.idempotence": True})
    group = {"group.id": topic, "auto.offset.reset": "earliest"}
    traffic = Traffic([], [])
    with closing(confluent_kafka.Consumer({**options, **group})) as consumer:
        consumer.subscribe([topic])

        def read(timeout: float) -> None:
            for message in consumer.consume(100, timeout):
                if message.error() is not None:
                    raise HarnessError(str(message.error()))
                traffic.read.append(message.value() or b"")

        for value in _values(seconds):
            producer.produce(topic, value)
            if producer.flush(_PATIENCE_S):
                raise HarnessError(f"{value!r} was not delivered")
            traffic.written.append(value)
            read(0)
        ends_at = time.monotonic() + _PATIENCE_S
        while len(traffic.read) < len(traffic.written) and time.monotonic() < ends_at:
            read(0.2)
    return traffic


def _by_kafka_python(options: Options, topic: str, seconds: int) -> Traffic:
    traffic = Traffic([], [])
    producer = KafkaProducer(**options, enable_idempotence=True)
    consumer = KafkaConsumer(**options, group_id=topic, auto_offset_reset="earliest")
    with closing(producer), closing(consumer):
        consumer.subscribe([topic])

        def read(timeout_ms: float) -> None:
            for records in consumer.poll(timeout_ms=timeout_ms).values():
                traffic.read.extend(record.value for record in records)

        read(3_000)  # it applies its assignment only within one poll
        for value in _values(seconds):
            producer.send(topic, value).get(_PATIENCE_S)
            traffic.written.append(value)
            read(1)
        ends_at = time.monotonic() + _PATIENCE_S
        while len(traffic.read) < len(traffic.written) and time.monotonic() < ends_at:
            read(200)
    return traffic


def _values(seconds: int) -> Iterable[bytes]:
    """Yield numbers for a time, at most so many per second."""
    began = time.monotonic()
    number = 0
    while (elapsed := time.monotonic() - began) < seconds:
        time.sleep(max(0.0, number / _PER_SECOND - elapsed))
        yield b"%d" % number
        number += 1
