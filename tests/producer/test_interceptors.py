"""Chain of interceptors; their exceptions do not propagate."""

import logging
from typing import Any

import pytest

from kclient.common.errors import KafkaError
from kclient.common.types import RecordMetadata
from kclient.producer.interceptors import ProducerInterceptor, ProducerInterceptors
from kclient.producer.send_arguments import ProducerRecord

METADATA = RecordMetadata("t", 0, 1, 2, 3, 4)


class Named(ProducerInterceptor):
    """Appends its name to the value, and notes its calls."""

    def __init__(self, name: str, calls: list[str]) -> None:
        self.name = name
        self.calls = calls

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        return record._replace(value=record.value + self.name)

    def on_acknowledgement(self, metadata: RecordMetadata | None, error: KafkaError | None) -> None:
        self.calls.append(f"{self.name} acknowledged")

    def close(self) -> None:
        self.calls.append(f"{self.name} closed")


class Broken(ProducerInterceptor):
    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        raise ValueError("on_send is broken")

    def on_acknowledgement(self, metadata: object, error: object) -> None:
        raise ValueError("on_acknowledgement is broken")

    def close(self) -> None:
        raise ValueError("close is broken")


class Forgetful(ProducerInterceptor):
    def on_send(self, record: ProducerRecord) -> Any:
        return None


def test_each_interceptor_gets_the_record_of_the_one_before() -> None:
    chain = ProducerInterceptors([Named("a", []), Named("b", [])])
    assert chain.on_send(ProducerRecord("t", "")).value == "ab"


def test_interceptor_that_raises_is_skipped(caplog: pytest.LogCaptureFixture) -> None:
    calls: list[str] = []
    chain = ProducerInterceptors([Named("a", calls), Broken(), Named("b", calls)])
    with caplog.at_level(logging.ERROR):
        assert chain.on_send(ProducerRecord("t", "")).value == "ab"
        chain.on_acknowledgement(METADATA, None)
        chain.close()
    assert calls == ["a acknowledged", "b acknowledged", "a closed", "b closed"]
    for call in ("on_send", "on_acknowledgement", "close"):
        assert f"{call} is broken" in caplog.text


def test_interceptor_without_result_is_skipped_and_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    chain = ProducerInterceptors([Forgetful(), Named("a", [])])
    with caplog.at_level(logging.ERROR):
        values = [chain.on_send(ProducerRecord("t", "")).value for _ in range(3)]
    assert values == ["a", "a", "a"]
    assert caplog.text.count("on_send returned NoneType, expected a ProducerRecord") == 1


def test_methods_of_the_base_class_change_nothing() -> None:
    class Plain(ProducerInterceptor):
        """Defines no method."""

    chain = ProducerInterceptors([Plain()])
    record = ProducerRecord("t", b"v")
    assert chain.on_send(record) is record


def test_delivery_callback_follows_the_interceptors() -> None:
    calls: list[str] = []
    chain = ProducerInterceptors([Named("a", calls)])
    both = chain.before(lambda *_: calls.append("callback"))
    assert both is not None
    both(METADATA, None)
    assert calls == ["a acknowledged", "callback"]


def test_record_without_interceptors_has_only_its_own_callback() -> None:
    def on_delivery(*_: object) -> None:
        raise AssertionError("it is not called")

    assert ProducerInterceptors([]).before(on_delivery) is on_delivery
    assert ProducerInterceptors([]).before(None) is None
    calls: list[str] = []
    chain = ProducerInterceptors([Named("a", calls)])
    alone = chain.before(None)
    assert alone is not None
    alone(None, KafkaError("x"))
    assert calls == ["a acknowledged"]
