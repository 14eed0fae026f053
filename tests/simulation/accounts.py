"""Counts of what a client has in progress; all return to zero."""

from kclient.client.network_client import NetworkClient
from tests.simulation.clients import (
    AsyncConsumer,
    AsyncProducer,
    BlockingConsumer,
    BlockingProducer,
)


def client_of(producer: BlockingProducer | AsyncProducer) -> NetworkClient:
    """Return the network client of a producer."""
    client = producer._core._sender._client
    assert isinstance(client, NetworkClient)
    return client


def open_accounts(producer: BlockingProducer | AsyncProducer) -> dict[str, int]:
    """Return the counts of a producer's unfinished work."""
    accumulator, transactions = producer._core._accumulator, producer._core._sender._transactions
    entries = [] if transactions is None else list(transactions._partitions.values())
    pool = accumulator.pool
    return {
        "requests": client_of(producer).in_flight_request_count(),
        "batches": len(accumulator.incomplete),
        "numbered batches": sum(len(entry.in_flight) for entry in entries),
        "batches in flight": sum(entry.on_wire for entry in entries),
        "bytes of memory": pool.total - pool.available(),
    }


def consumer_accounts(consumer: BlockingConsumer | AsyncConsumer) -> dict[str, int]:
    """Return the counts of a consumer's unfinished work."""
    network = consumer._core.network
    return {
        "requests": network._client.in_flight_request_count(),
        "unsent requests": sum(map(len, network._unsent.values())),
        "responses to be handled": len(network._completed),
    }
