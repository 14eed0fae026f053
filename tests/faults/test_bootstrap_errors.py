"""Peers at a bootstrap address that are not brokers, and the errors of each client."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from kclient import AdminClient, Consumer, Producer, TopicPartition
from kclient.client.exponential_backoff import ExponentialBackoff
from kclient.common.errors import BootstrapError, KafkaError
from kclient.testing import EmbeddedCluster
from tests.support.checks.waiting import wait_until
from tests.support.processes.hostile_peer import HOSTILE, BlackHole, ClosedPort, HostilePeer, waits

ROOT = Path(__file__).parents[2]

# Brisk, so that each attempt is over within the call.
BRISK = {
    "bootstrap_servers": "",
    "request_timeout_ms": 600,
    "socket_connection_setup_timeout_ms": 400,
    "reconnect_backoff_ms": 50,
}
PATIENCE = 1.5
BACKOFF_MS = (50, 1_000)  # the first wait and the longest, as they are by default

MODES = {
    "refused": "could not connect: Connection refused",
    "unknown name": "could not look up no-such-host.invalid: ",
    "black hole": "could not connect within ",
    "silence": "no response to API_VERSIONS within 600 ms",
    **{mode: cause for mode, (_, cause) in HOSTILE.items()},
}


def produce(servers: str) -> None:
    options = {**BRISK, "bootstrap_servers": servers, "max_block_ms": int(PATIENCE * 1000)}
    with Producer(options) as producer:
        producer.send("t", b"v")


def consume(servers: str) -> None:
    options = {**BRISK, "bootstrap_servers": servers, "group_id": "g"}
    with Consumer({**options, "default_api_timeout_ms": int(PATIENCE * 1000)}) as consumer:
        consumer.end_offsets([TopicPartition("t", 0)])


def administrate(servers: str) -> None:
    options = {**BRISK, "bootstrap_servers": servers}
    with AdminClient({**options, "default_api_timeout_ms": int(PATIENCE * 1000)}) as admin:
        admin.list_topics()


CLIENTS: dict[str, Callable[[str], None]] = {
    "Producer": produce,
    "Consumer": consume,
    "AdminClient": administrate,
}


def error_of(call: Callable[[str], None], servers: str) -> KafkaError:
    with pytest.raises(KafkaError) as caught:
        call(servers)
    return caught.value


@pytest.fixture(scope="module")
def addresses() -> Iterator[dict[str, str]]:
    with ExitStack() as stack:
        yield {
            "refused": stack.enter_context(ClosedPort()).address,
            "unknown name": "no-such-host.invalid:9092",
            "black hole": stack.enter_context(BlackHole()).address,
            "silence": stack.enter_context(HostilePeer(waits)).address,
            **{
                mode: stack.enter_context(HostilePeer(act)).address
                for mode, (act, _) in HOSTILE.items()
            },
        }


@pytest.fixture(scope="module")
def errors(addresses: dict[str, str]) -> dict[tuple[str, str], KafkaError]:
    """What every client raises of every peer; all at once, since each takes its time."""
    with ThreadPoolExecutor(len(MODES) * len(CLIENTS)) as pool:
        asked = {
            (mode, name): pool.submit(error_of, call, addresses[mode])
            for mode in MODES
            for name, call in CLIENTS.items()
        }
        return {key: future.result() for key, future in asked.items()}


@pytest.mark.fault("C1", "C2", "C3", "C4", "P1", "P2", "P3")
@pytest.mark.parametrize("name", CLIENTS)
@pytest.mark.parametrize("mode", MODES)
def test_each_kind_of_peer_is_named_in_the_error(
    errors: dict[tuple[str, str], KafkaError], addresses: dict[str, str], mode: str, name: str
) -> None:
    error = errors[mode, name]
    assert isinstance(error, BootstrapError)
    assert f"{addresses[mode]}: " in str(error)
    assert MODES[mode] in str(error)
    assert error.__cause__ is not None


@pytest.mark.fault("C1")
@pytest.mark.parametrize("name", CLIENTS)
def test_error_lists_every_address_with_its_cause(addresses: dict[str, str], name: str) -> None:
    modes = ["refused", "unknown name", "black hole", "http", "garbage", "eof"]
    error = error_of(CLIENTS[name], ",".join(addresses[mode] for mode in modes))
    assert isinstance(error, BootstrapError)
    parts = str(error).split("; ")
    for mode in modes:
        assert any(addresses[mode] in part and MODES[mode] in part for part in parts), mode


@pytest.mark.fault("C1", "C2", "C3", "C4")
@pytest.mark.parametrize("dead", ["refused", "unknown name", "black hole", "silence", "http"])
def test_dead_servers_do_not_keep_clients_from_the_one_that_lives(
    addresses: dict[str, str], dead: str
) -> None:
    with EmbeddedCluster() as cluster:
        servers = f"{addresses[dead]},{cluster.bootstrap_servers}"
        options = {**BRISK, "bootstrap_servers": servers}
        with Producer(options) as producer:
            assert producer.send("t", b"v").result(10).offset == 0
        with Consumer(options) as consumer:
            assert consumer.end_offsets([TopicPartition("t", 0)]) == {TopicPartition("t", 0): 1}
        with AdminClient(options) as admin:
            assert admin.list_topics()


def most_connections(seconds: float) -> int:
    """Return how many there are in the first seconds if every wait is the shortest."""
    backoff = ExponentialBackoff(*BACKOFF_MS, lambda: 0.0)
    made, then_ms = 0, 0.0
    while then_ms <= seconds * 1000:
        then_ms += backoff.backoff(made)
        made += 1
    return made


@pytest.mark.fault("C12", "P1", "P2", "P3")
def test_a_peer_that_is_no_broker_is_not_hammered() -> None:
    with ExitStack() as stack:
        peers = {mode: stack.enter_context(HostilePeer(act)) for mode, (act, _) in HOSTILE.items()}
        started = time.monotonic()
        for peer in peers.values():
            options = {
                "bootstrap_servers": peer.address,
                "reconnect_backoff_ms": BACKOFF_MS[0],
                "reconnect_backoff_max_ms": BACKOFF_MS[1],
            }
            producer = stack.enter_context(Producer(options, max_block_ms=0))
            with pytest.raises(KafkaError):
                producer.send("t", b"v")
        wait_until(lambda: time.monotonic() - started > 5, "five seconds")
        early = {mode: peer.connections for mode, peer in peers.items()}
        between = time.monotonic()
        assert max(early.values()) <= most_connections(between - started), early
        wait_until(lambda: time.monotonic() - between > 4, "four more")
        late = {mode: peer.connections - early[mode] for mode, peer in peers.items()}
        most = (time.monotonic() - between) * 1000 / BACKOFF_MS[1] + 1
        assert max(late.values()) <= most, late
        assert min(late.values()) >= 2, late


@pytest.mark.fault("P2")
def test_a_frame_of_99_megabytes_that_is_only_promised_takes_no_memory() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.claimed_frame"],
        check=True,
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=60,
    )
    grown, connections, output = done.stdout.split(" ", 2)
    assert "within 400 ms" in output
    assert int(connections) >= 2
    assert int(grown) <= 8 * 1024
