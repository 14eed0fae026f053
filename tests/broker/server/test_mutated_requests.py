"""Mutated requests of every API and version: the connection closes and nothing changes."""

import logging
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kclient.broker.server.kafka_apis import API_TABLE
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.headers import encode_request
from kclient.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kclient.testing import EmbeddedCluster
from tests.support.clients.requests import filled_request
from tests.support.clients.wire import Wire, batch, joined, records_of

VERSIONS = [(key, version) for key, api in sorted(API_TABLE.items()) for version in api.versions]
TOPIC = "kept"
HEADER = 14  # API, version, correlation id, and the client id "test", which all versions have


@pytest.fixture(scope="module")
def kept() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster() as cluster, Wire(cluster.bootstrap_servers) as wire:
        wire.create_topic(TOPIC)
        assert wire.produce(TOPIC, batch([b"a", b"b"])).error_code == 0
        yield cluster


def state(cluster: EmbeddedCluster, wire: Wire) -> object:
    """Return all state that clients can change: topics, records, groups, offsets, files."""
    found = wire.fetch(TOPIC, 0)
    metadata = wire.ask(MetadataRequest(topics=None), 12, MetadataResponse)
    groups = cluster.broker.services.groups.list_groups()
    names = sorted(path.name for path in cluster.data_dir.iterdir() if not _is_checkpoint(path))
    return records_of(found.records), found.high_watermark, metadata, groups, names


def _is_checkpoint(path: Path) -> bool:
    """Return whether the broker writes the file now and then, whatever clients do."""
    return path.name.endswith("-checkpoint")


def cut_short(frame: bytes, rng: random.Random) -> bytes:
    """Return a truncated request, which cannot be decoded in any version."""
    return frame[: rng.randrange(HEADER, len(frame))]


def noise(frame: bytes, rng: random.Random) -> bytes:
    """Return a valid header with a random body, whose lengths exceed it."""
    return frame[:HEADER] + b"\x7f" + b"\xff" * 3 + rng.randbytes(rng.randrange(1, 60))


@pytest.mark.fault("B17")
@pytest.mark.parametrize("spoil", [cut_short, noise])
def test_mutated_requests_affect_only_their_connection(
    kept: EmbeddedCluster,
    caplog: pytest.LogCaptureFixture,
    spoil: Callable[[bytes, random.Random], bytes],
) -> None:
    caplog.set_level(logging.ERROR)
    rng = random.Random(5)
    topic_id = kept.broker.services.metadata.image.topics[TOPIC].topic_id
    with Wire(kept.bootstrap_servers) as other:
        before = state(kept, other)
        for key, version in VERSIONS:
            request = filled_request(API_TABLE[key].request_type, version, TOPIC, topic_id)
            frame = joined(encode_request(request, version, 1, "test"))
            if len(frame) <= HEADER + 1:
                continue  # no body to mutate
            with Wire(kept.bootstrap_servers) as wire:
                wire.send_frame(spoil(frame, rng))
                assert ends(wire, key), (key, version)
        assert state(kept, other) == before
    assert caplog.records == []


def ends(wire: Wire, key: ApiKey) -> bool:
    """Return whether the connection is closed; ApiVersions may return an error instead."""
    try:
        wire.receive_frame()
    except (EOFError, ConnectionResetError):
        return True
    return key is ApiKey.API_VERSIONS


@pytest.mark.fault("B17")
def test_random_bytes(kept: EmbeddedCluster, tmp_path: Path) -> None:
    rng = random.Random(9)
    with Wire(kept.bootstrap_servers) as other:
        before = state(kept, other)
        for _ in range(200):
            with Wire(kept.bootstrap_servers) as wire:
                wire.send_frame(rng.randbytes(rng.randrange(0, 200)))
                assert wire.is_closed_by_peer()
        assert state(kept, other) == before
