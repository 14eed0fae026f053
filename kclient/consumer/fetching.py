"""Fetch requests, fetched data, and the records that polls take from it."""

from contextlib import suppress

from kclient.common.errors import KafkaError
from kclient.common.log_context import LogContext
from kclient.common.runtime import Runtime
from kclient.consumer.consumer_config import ConsumerConfig
from kclient.consumer.consumer_metrics import ConsumerFetchMetrics
from kclient.consumer.consumer_network_client import ConsumerNetworkClient
from kclient.consumer.fetch_buffer import FetchBuffer
from kclient.consumer.fetch_collector import FetchCollector
from kclient.consumer.fetcher import Fetcher
from kclient.consumer.record_tracer import RecordTracer
from kclient.consumer.subscription_state import SubscriptionState
from kclient.consumer.unconfirmed_polls import UnconfirmedPolls


class Fetching:
    """Fetches records, and takes back those that the application did not receive.

    Attributes:
        buffer: Fetched data.
        fetcher: Sends fetches.
        collector: Takes records from the buffer.
        unconfirmed: Polls of which it is unknown whether their records were received.
    """

    def __init__(
        self,
        config: ConsumerConfig,
        runtime: Runtime,
        network: ConsumerNetworkClient,
        subscriptions: SubscriptionState,
        metrics: ConsumerFetchMetrics,
        log_context: LogContext,
    ) -> None:
        self._network = network
        self.buffer = FetchBuffer()
        self.fetcher = Fetcher(
            config, runtime, network, subscriptions, self.buffer, metrics, log_context
        )
        self.collector = FetchCollector(
            config, runtime, network, subscriptions, self.buffer, metrics, log_context
        )
        self.unconfirmed = UnconfirmedPolls(self.collector)

    def undo(self) -> None:
        """Reset the positions to before the last poll: its records were not returned."""
        self.collector.undo()
        self.unconfirmed.last = None

    def set_tracer(self, tracer: RecordTracer | None) -> None:
        """Report the steps of records to a tracer, or stop it for None. For any thread."""
        self.collector.tracer = tracer
        self.fetcher.set_tracer(tracer)

    def close(self) -> None:
        """Close the fetch sessions without waiting for the responses."""
        with suppress(KafkaError):
            if self.fetcher.close():
                self._network.flush()
