"""Construction of a producer's components."""

from collections.abc import Callable
from typing import NamedTuple

from kclient.client.client_metadata import ProducerMetadata
from kclient.client.exponential_backoff import ExponentialBackoff
from kclient.client.network_client import NetworkClient
from kclient.client.network_client_builder import build_network_client
from kclient.common.log_context import NO_LOG_CONTEXT, LogContext
from kclient.common.metrics import Metrics
from kclient.common.runtime import Runtime
from kclient.producer.batch_drainer import oldest_batch
from kclient.producer.buffer_pool import BufferPool
from kclient.producer.callback_runner import CallbackRunner
from kclient.producer.producer_config import ProducerConfig
from kclient.producer.producer_metrics import ProducerMetrics
from kclient.producer.record_accumulator import AccumulatorSettings, RecordAccumulator
from kclient.producer.sender import Sender, SenderSettings
from kclient.producer.topic_info import SlowNodes
from kclient.producer.transaction_manager import TransactionManager

_CLIENT_ID = "kclient-producer"


class ProducerParts(NamedTuple):
    """The components used by the public methods of a producer."""

    accumulator: RecordAccumulator
    client: NetworkClient
    metadata: ProducerMetadata
    metrics: ProducerMetrics
    runner: CallbackRunner
    sender: Sender


def assemble(
    config: ProducerConfig, runtime: Runtime, log_context: LogContext = NO_LOG_CONTEXT
) -> ProducerParts:
    """Create the components of a producer, without connecting or starting a thread."""
    values = config.values
    metrics = _metrics(config, runtime)
    runner = CallbackRunner(runtime.tasks, metrics.callback_errors, log_context)
    metadata = _metadata(config, runtime, log_context)
    client = build_network_client(
        values,
        runtime,
        metadata,
        client_id=_CLIENT_ID,
        max_in_flight=values["max_in_flight_requests_per_connection"],
        log_context=log_context,
    )
    transactions = TransactionManager(log_context) if config.enable_idempotence else None
    accumulator = RecordAccumulator(
        AccumulatorSettings(
            config.batch_size,
            values["linger_ms"],
            config.delivery_timeout_ms,
            values["max_request_size"],
            values["partitioner_adaptive_partitioning_enable"],
        ),
        _pool(config, runtime, metrics, client.wakeup),
        runtime,
        runner,
        _backoff(config, runtime),
        SlowNodes(values["partitioner_availability_timeout_ms"]),
        client.wakeup,
        oldest_batch if transactions is None else transactions.next_batch,
    )
    sender = Sender(
        _sender_settings(config, runtime),
        client,
        metadata,
        accumulator,
        transactions,
        metrics,
        runtime,
        log_context,
    )
    _show_levels(metrics, accumulator.pool, client, metadata)
    return ProducerParts(accumulator, client, metadata, metrics, runner, sender)


def _metrics(config: ProducerConfig, runtime: Runtime) -> ProducerMetrics:
    return ProducerMetrics(
        Metrics(
            runtime.clock,
            runtime.tasks,
            num_samples=config.values["metrics_num_samples"],
            sample_window_ms=config.values["metrics_sample_window_ms"],
        )
    )


def _pool(
    config: ProducerConfig, runtime: Runtime, metrics: ProducerMetrics, wakeup: Callable[[], None]
) -> BufferPool:
    return BufferPool(
        config.values["buffer_memory"],
        config.batch_size,
        runtime.clock,
        runtime.tasks,
        metrics.buffer_wait,
        metrics.buffer_exhausted,
        wakeup,
    )


def _metadata(
    config: ProducerConfig, runtime: Runtime, log_context: LogContext
) -> ProducerMetadata:
    values = config.values
    return ProducerMetadata(
        runtime,
        refresh_backoff_ms=values["retry_backoff_ms"],
        refresh_backoff_max_ms=values["retry_backoff_max_ms"],
        max_age_ms=values["metadata_max_age_ms"],
        max_idle_ms=values["metadata_max_idle_ms"],
        log_context=log_context,
    )


def _sender_settings(config: ProducerConfig, runtime: Runtime) -> SenderSettings:
    values = config.values
    return SenderSettings(
        acks=config.acks,
        retries=values["retries"],
        request_timeout_ms=values["request_timeout_ms"],
        keep_order=values["max_in_flight_requests_per_connection"] == 1,
        compression=values["compression_type"],
        compression_level=config.compression_level,
        retry_backoff=_backoff(config, runtime),
    )


def _backoff(config: ProducerConfig, runtime: Runtime) -> ExponentialBackoff:
    values = config.values
    return ExponentialBackoff(
        values["retry_backoff_ms"], values["retry_backoff_max_ms"], runtime.random.random
    )


def _show_levels(
    metrics: ProducerMetrics, pool: BufferPool, client: NetworkClient, metadata: ProducerMetadata
) -> None:
    registry = metrics.registry
    registry.gauge("buffer-total-bytes", lambda: pool.total)
    registry.gauge("buffer-available-bytes", pool.available)
    registry.gauge("waiting-threads", pool.queued)
    registry.gauge("requests-in-flight", client.in_flight_request_count)
    registry.gauge("metadata-age", lambda: metadata.age_ms() / 1000.0)
