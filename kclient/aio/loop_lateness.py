"""Lateness of a client's callbacks: code that blocks the event loop delays all of them."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from kclient.common.log_context import ContextLogger
from kclient.common.metrics import Metrics
from kclient.common.runtime import Runtime

if TYPE_CHECKING:  # each client imports its own
    from kclient.consumer.consumer_config import ConsumerConfig
    from kclient.producer.producer_config import ProducerConfig


class LoopLateness:
    """Measures how late timers and callbacks of a client run; no thread watches the event loop.

    A block is at least as long as the lateness of what was due during it.
    """

    def __init__(
        self,
        config: "ConsumerConfig | ProducerConfig",
        runtime: Runtime,
        limit_ms: float = math.inf,
        report: Callable[[float], None] = lambda late_ms: None,
    ) -> None:
        """Measure nothing so far.

        Args:
            config: Windows of the metrics.
            runtime: Clock.
            limit_ms: Lateness that is reported.
            report: Called once for each block of the event loop, with the lateness in ms.
        """
        self._metrics = Metrics(
            runtime.clock,
            runtime.tasks,
            num_samples=config.metrics_num_samples,
            sample_window_ms=config.metrics_sample_window_ms,
        )
        self._sensor = self._metrics.sensor(maximum="event-loop-late-max-ms")
        self._limit_ms = limit_ms
        self._report = report
        self._reported_ms = -math.inf

    def was_late(self, due_ms: float, now_ms: float) -> None:
        """Record a timer or callback, given when it was due."""
        late_ms = now_ms - due_ms
        self._sensor.record(late_ms, now_ms)
        # Several may have become due in one block.
        if late_ms > self._limit_ms and due_ms > self._reported_ms:
            self._reported_ms = now_ms
            self._report(late_ms)

    def metrics(self) -> dict[str, float]:
        """Return the metric; may be called from any thread."""
        return self._metrics.snapshot()


def lateness_of_member(
    config: "ConsumerConfig", runtime: Runtime, log: ContextLogger
) -> LoopLateness:
    """Return the lateness of a consumer, which logs blocks that delay its heartbeats."""
    if config.group_id is None:
        return LoopLateness(config, runtime)

    def report(late_ms: float) -> None:
        if late_ms > config.session_timeout_ms:
            log.error(
                "the event loop was blocked for at least %.1f s, longer than session.timeout.ms "
                "(%.1f s): the group has removed this member, and may have assigned its partitions "
                "to others; move the blocking code to asyncio.to_thread",
                late_ms / 1000.0,
                config.session_timeout_ms / 1000.0,
            )
            return
        log.warning(
            "the event loop was blocked for at least %.1f s (heartbeats are due every %.1f s); "
            "move the blocking code to asyncio.to_thread; asyncio's debug mode names it",
            late_ms / 1000.0,
            config.heartbeat_interval_ms / 1000.0,
        )

    return LoopLateness(config, runtime, config.heartbeat_interval_ms, report)
