"""Core of a producer in virtual time, without a broker: what its calls wait for."""

import pytest

from kclient.common.errors import BootstrapError, ClosedError, KafkaTimeoutError
from kclient.common.waiting import run_steps
from kclient.producer.producer_config import PRODUCER_CONFIG
from kclient.producer.producer_core import ProducerCore
from tests.support.virtual.virtual_home import VirtualHome


class Core:
    """A core whose only bootstrap server refuses connections."""

    def __init__(self, **options: object) -> None:
        self.home = VirtualHome()
        given = {"bootstrap_servers": "10.0.0.1:9092", "max_block_ms": 500, **options}
        self.core = ProducerCore(PRODUCER_CONFIG.parse(given), self.home.runtime)
        self.core.start()

    @property
    def now_ms(self) -> float:
        return self.home.clock.now_ms

    def close(self, timeout: float = 1.0) -> int:
        return run_steps(self.core.close(timeout), self.home.clock)


def test_unknown_topic_times_out_after_max_block_ms() -> None:
    made = Core()
    started_ms = made.now_ms
    with pytest.raises(KafkaTimeoutError, match="not known within 500 ms") as caught:
        run_steps(made.core.appender.await_topic("orders", None), made.home.clock)
    assert isinstance(caught.value, BootstrapError)
    assert made.now_ms == pytest.approx(started_ms + 500, abs=1)
    assert made.core.metrics()["metadata-wait-time-ns-total"] == pytest.approx(500e6, rel=0.01)
    assert made.core.appender.topics == {}
    assert made.close() == 0


def test_call_without_time_does_not_wait() -> None:
    made = Core(max_block_ms=0)
    started_ms = made.now_ms
    with pytest.raises(KafkaTimeoutError) as caught:
        run_steps(
            made.core.appender.send_many("orders", [b"x"], None, None, None, None),
            made.home.clock,
        )
    assert made.now_ms == started_ms
    assert caught.value.__notes__ == ["send_many: 0 of 1 records were queued before"]
    made.close()


def test_call_that_waits_for_a_topic_ends_at_close() -> None:
    made = Core(max_block_ms=60_000)
    started_ms = made.now_ms
    made.home.clock.after(100, made.core.initiate_close)
    with pytest.raises(ClosedError):
        run_steps(made.core.appender.await_topic("orders", None), made.home.clock)
    assert made.now_ms < started_ms + 1_000
    assert made.close() == 0


def test_flush_of_nothing_returns_at_once() -> None:
    made = Core()
    started_ms = made.now_ms
    run_steps(made.core.flush(1.0), made.home.clock)
    assert made.now_ms == started_ms
    made.close()


def test_levels_are_reported_as_gauges() -> None:
    made = Core(buffer_memory=100_000, batch_size=1_000)
    metrics = made.core.metrics()
    assert metrics["buffer-total-bytes"] == metrics["buffer-available-bytes"] == 100_000
    assert metrics["waiting-threads"] == metrics["requests-in-flight"] == 0
    made.close()


def test_close_is_idempotent_and_ends_the_sender() -> None:
    made = Core()
    made.close()
    assert made.close() == 0
    with pytest.raises(ClosedError):
        made.core.check_usable("send")
