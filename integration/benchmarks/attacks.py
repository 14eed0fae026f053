"""Latency of authenticated clients while others attack the broker before they are authenticated.

``make bench-attacks``, on a quiet machine. The broker is a process of its own, and so are the
attackers. Phases without an attack are measured before each attack, and the ratio is
that of the medians. Memory is the resident memory of the broker at the end of the attack.
"""

import argparse
import multiprocessing
import socket
import ssl
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import NamedTuple

from kclient.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kclient.protocol.messages.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from kclient.testing.certificate_authority import CertificateAuthority
from tests.support.clients.wire import Wire
from tests.support.processes.broker_process import BrokerProcess
from tests.support.processes.process_stats import resident_bytes

_PASSWORD = "password-of-the-benchmark"  # noqa: S105 - of a broker that lives for the benchmark
_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
_JAAS = "sasl.jaas.config"
_CONNECTIONS = 2000
_LOGINS_EVERY = 50
_PAUSE_S = 0.002
_MIB = 1 << 20

Attack = Callable[[str, Event], None]


class Latency(NamedTuple):
    """Median and 99th percentile of requests, and median of logins, in ms."""

    request: float
    slowest: float
    login: float


def log_in(server: str, context: ssl.SSLContext, password: str = _PASSWORD) -> Wire:
    """Open a connection with TLS, and authenticate."""
    wire = Wire(server)
    wire.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    wire.socket = context.wrap_socket(wire.socket, server_hostname="127.0.0.1")
    wire.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1, SaslHandshakeResponse)
    token = f"\0alice\0{password}".encode()
    wire.ask(SaslAuthenticateRequest(auth_bytes=token), 2, SaslAuthenticateResponse)
    return wire


def measure(server: str, context: ssl.SSLContext, seconds: float) -> Latency:
    """Measure one client that sends a request each few milliseconds, and logs in at times."""
    requests: list[float] = []
    logins: list[float] = []
    ends_at = time.monotonic() + seconds
    with log_in(server, context) as wire:
        while time.monotonic() < ends_at:
            began = time.perf_counter()
            wire.ask(ApiVersionsRequest(), 0, ApiVersionsResponse)
            requests.append(time.perf_counter() - began)
            if len(requests) % _LOGINS_EVERY == 0:
                began = time.perf_counter()
                log_in(server, context).close()
                logins.append(time.perf_counter() - began)
            time.sleep(_PAUSE_S)
    slowest = statistics.quantiles(requests, n=100)[98]
    return Latency(
        *(1000 * value for value in (statistics.median(requests), slowest, _median(logins)))
    )


def _median(values: list[float]) -> float:
    return statistics.median(values) if values else float("nan")


def unverified() -> ssl.SSLContext:
    """Return the context of an attacker."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def hello() -> bytes:
    """Return the first message of a TLS handshake."""
    outgoing = ssl.MemoryBIO()
    session = unverified().wrap_bio(ssl.MemoryBIO(), outgoing)
    with suppress(ssl.SSLWantReadError):
        session.do_handshake()
    return outgoing.read()


def _hold_open(server: str, stop: Event, first: bytes, trickle: bytes) -> None:
    """Keep many connections open, which send something at first and a byte a second."""
    host, _, port = server.rpartition(":")
    peers: list[socket.socket] = []
    while not stop.is_set():
        while len(peers) < _CONNECTIONS and not stop.is_set():
            with suppress(OSError):
                peer = socket.create_connection((host, int(port)), 5)
                peer.sendall(first)
                peers.append(peer)
        alive = []
        for peer in peers:
            try:
                if trickle:
                    peer.sendall(trickle)
                peer.setblocking(False)
                if peer.recv(4096):
                    alive.append(peer)
            except BlockingIOError:
                alive.append(peer)
            except OSError:
                peer.close()
        peers = alive
        stop.wait(1)


def silent(server: str, stop: Event) -> None:
    """Many connections that send nothing."""
    _hold_open(server, stop, b"", b"")


def trickling(server: str, stop: Event) -> None:
    """Many TLS handshakes that continue by a byte a second."""
    data = hello()
    _hold_open(server, stop, data[:100], data[100:101])


def unfinished(server: str, stop: Event) -> None:
    """Many TLS handshakes that are never completed."""
    _hold_open(server, stop, hello(), b"")


def guessing(server: str, stop: Event) -> None:
    """Four connections at a time that try passwords."""
    context = unverified()
    while not stop.is_set():
        with ExitStack() as stack:
            for number in range(4):
                with suppress(OSError, EOFError):
                    stack.enter_context(log_in(server, context, f"guess-{number}"))


def garbage(server: str, stop: Event) -> None:
    """One connection after the other, with bytes of another protocol."""
    while not stop.is_set():
        with suppress(OSError), Wire(server) as wire:
            wire.send_bytes(b"GET / HTTP/1.1\r\n\r\n" * 20)
            wire.socket.recv(4096)
            stop.wait(0.001)


ATTACKS: Mapping[str, Attack] = {
    each.__name__: each for each in (silent, trickling, unfinished, guessing, garbage)
}


def run(server: str, pid: int, context: ssl.SSLContext, name: str, seconds: float) -> str:
    """Measure before and during an attack; return a row of the report."""
    before, memory = measure(server, context, seconds), resident_bytes(pid)
    spawner = multiprocessing.get_context("spawn")
    stop = spawner.Event()
    attacker = spawner.Process(target=ATTACKS[name], args=(server, stop))
    attacker.start()
    try:
        time.sleep(2)  # the attack begins
        during = measure(server, context, seconds)
        grown = resident_bytes(pid) - memory
    finally:
        stop.set()
        attacker.join(30)
        attacker.kill()
    return (
        f"| {name} | {before.request:.2f} | {during.request:.2f} |"
        f" {during.request / before.request:.2f} | {before.slowest:.1f} | {during.slowest:.1f} |"
        f" {before.login:.1f} | {during.login:.1f} | {grown / _MIB:+.1f} |"
    )


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m integration.benchmarks.attacks")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each measurement")
    parser.add_argument("--only", choices=ATTACKS, action="append", help="default: all")
    options = parser.parse_args()
    authority = CertificateAuthority("authority")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=authority.pem)
    print(
        "| attack | ms before | ms | ratio | p99 before | p99 | login before | login | MiB |\n"
        "|---|---|---|---|---|---|---|---|---|"
    )
    with tempfile.TemporaryDirectory() as directory:
        store = Path(directory) / "server.pem"
        store.write_text(authority.issue("broker", ("127.0.0.1",)).pem)
        settings = (
            f"ssl.keystore.location={store}",
            "sasl.enabled.mechanisms=PLAIN",
            f'listener.name.sasl_ssl.plain.{_JAAS}={_MODULE} required user_alice="{_PASSWORD}";',
        )
        data = Path(directory) / "data"
        with BrokerProcess(data, *settings, listen="SASL_SSL://127.0.0.1:0") as broker:
            for name in options.only or ATTACKS:
                row = run(broker.bootstrap, broker.pid, context, name, options.seconds)
                print(row, flush=True)


if __name__ == "__main__":
    main()
