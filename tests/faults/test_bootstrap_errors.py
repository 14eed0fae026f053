"""Peers at a bootstrap address that are not brokers, and the errors of each client."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from kclient import AdminClient, Consumer, Producer, TopicPartition
from kclient.client.exponential_backoff import ExponentialBackoff
from kclient.common.errors import BootstrapError, KafkaError
from kclient.testing import EmbeddedCluster
from kclient.testing.virtual import VirtualWorld
from kclient.testing.virtual.virtual_socket import VirtualSocket
from tests.support.processes.hostile_peer import HOSTILE, BlackHole, ClosedPort, HostilePeer, waits

ROOT = Path(__file__).parents[2]

# Each attempt ends within the call.
SHORT_TIMEOUTS = {
    "bootstrap_servers": "",
    "request_timeout_ms": 600,
    "socket_connection_setup_timeout_ms": 400,
    "reconnect_backoff_ms": 50,
}
CALL_S = 1.5
BACKOFF_MS = (50, 1_000)  # the first wait and the longest, as they are by default

MODES = {
    "refused": "could not connect: Connection refused",
    "unknown name": "could not look up no-such-host.invalid: ",
    "black hole": "could not connect within ",
    "silence": "no response to API_VERSIONS within 600 ms",
    **{mode: cause for mode, (_, cause) in HOSTILE.items()},
}


def produce(servers: str) -> None:
    options = {**SHORT_TIMEOUTS, "bootstrap_servers": servers, "max_block_ms": int(CALL_S * 1000)}
    with Producer(options) as producer:
        producer.send("t", b"v")


def consume(servers: str) -> None:
    options = {**SHORT_TIMEOUTS, "bootstrap_servers": servers, "group_id": "g"}
    with Consumer({**options, "default_api_timeout_ms": int(CALL_S * 1000)}) as consumer:
        consumer.end_offsets([TopicPartition("t", 0)])


def administrate(servers: str) -> None:
    options = {**SHORT_TIMEOUTS, "bootstrap_servers": servers}
    with AdminClient({**options, "default_api_timeout_ms": int(CALL_S * 1000)}) as admin:
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
    """The error of each client for each peer, all at the same time because each call waits."""
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
def test_error_names_each_kind_of_peer(
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
@pytest.mark.parametrize("unusable", ["refused", "unknown name", "black hole", "silence", "http"])
def test_clients_connect_although_one_server_is_unusable(
    addresses: dict[str, str], unusable: str
) -> None:
    with EmbeddedCluster() as cluster:
        servers = f"{addresses[unusable]},{cluster.bootstrap_servers}"
        options = {**SHORT_TIMEOUTS, "bootstrap_servers": servers}
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


class WrongPeer:
    """Responds to the first bytes and closes the connection."""

    def __init__(self, reply: bytes) -> None:
        self._reply = reply

    def connected(self, end: VirtualSocket) -> None: ...

    def received(self, end: VirtualSocket, data: bytes) -> None:
        end.deliver(self._reply)
        end.end()


@pytest.mark.fault("C12", "P1", "P2", "P3")
@pytest.mark.parametrize("reply", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\xff\xff\xff\xff", b""])
def test_producer_backs_off_from_a_peer_that_is_no_broker(reply: bytes) -> None:
    with VirtualWorld(seed=1) as world:
        peer = world.machine("peer")
        world.net.peers[peer.ip, 9092] = lambda: WrongPeer(reply)
        options = {
            "bootstrap_servers": f"{peer.ip}:9092",
            "reconnect_backoff_ms": BACKOFF_MS[0],
            "reconnect_backoff_max_ms": BACKOFF_MS[1],
            "max_block_ms": 0,
        }
        runtime = world.machine("shop").process("shop").runtime
        with Producer(options, runtime=runtime) as producer:
            with pytest.raises(KafkaError):
                producer.send("t", b"v")
            world.sleep(5_000)
            early = len(world.net.connects)
            assert 2 <= early <= most_connections(5.0)
            world.sleep(60_000)
            assert 40 <= len(world.net.connects) - early <= 61


@pytest.mark.fault("P2")
def test_announced_frame_of_99_megabytes_allocates_no_memory() -> None:
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
