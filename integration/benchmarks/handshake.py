"""CPU time of TLS handshakes of the client, full and resumed.

Run by hand: ``make bench-handshake``. Client and server are in one thread and connected in memory;
the time of each is measured by itself, and the kinds of handshakes take turns.
"""

import argparse
import ssl
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from integration.benchmarks.spread import Spread
from kclient.network.tls.session_cache import TlsSessionCache
from kclient.network.tls.ssl_transport_layer import READ_SIZE, SslTransportLayer
from kclient.network.tls.store_loading import pem_file
from kclient.testing.certificate_authority import CertificateAuthority, Identity
from tests.support.checks.waiting import HarnessError
from tests.support.virtual.pipe import pipe

_HOST = "localhost"
_VERSIONS = {"TLS 1.2": ssl.TLSVersion.TLSv1_2, "TLS 1.3": ssl.TLSVersion.TLSv1_3}
_DATA = b"first response"

T = TypeVar("T")


class Handshake(NamedTuple):
    """Milliseconds of CPU of both sides, up to the first response, and what was done."""

    client_ms: float
    server_ms: float
    is_resumed: bool


class Side:
    """A side of a connection, with the CPU time of its calls."""

    def __init__(self, create: Callable[[], SslTransportLayer]) -> None:
        self.cpu_ns = 0
        self.layer = self.timed(create)

    def timed(self, call: Callable[[], T]) -> T:
        """Run a call of this side."""
        started = time.thread_time_ns()
        outcome = call()
        self.cpu_ns += time.thread_time_ns() - started
        return outcome


class Peers:
    """Contexts of a client and a server, and the sessions of the client."""

    def __init__(self, version: ssl.TLSVersion, *, has_client_certificate: bool) -> None:
        authority = CertificateAuthority("authority of the benchmark")
        self.client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.client.load_verify_locations(cadata=authority.pem)
        self.server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        _load(self.server, authority.issue("broker", (_HOST,)))
        if has_client_certificate:
            _load(self.client, authority.issue("client", ("client",)))
            self.server.load_verify_locations(cadata=authority.pem)
            self.server.verify_mode = ssl.CERT_REQUIRED
        for context in (self.client, self.server):
            context.minimum_version = context.maximum_version = version
        self.sessions = TlsSessionCache()

    def shake(self, sessions: TlsSessionCache) -> Handshake:
        """Connect once, with the sessions of earlier connections."""
        near, far = pipe()
        scratch, buffer = bytearray(READ_SIZE), memoryview(bytearray(100))
        client = Side(
            lambda: SslTransportLayer(
                near, self.client, scratch, server_hostname=_HOST, sessions=sessions
            )
        )
        server = Side(lambda: SslTransportLayer(far, self.server, scratch, server_side=True))
        while not (client.layer.ready() and server.layer.ready()):
            for side in (client, server):
                if not side.layer.ready():
                    side.timed(side.layer.handshake)
        server.timed(lambda: server.layer.write([_DATA]))
        client.timed(lambda: client.layer.read_into(buffer))
        return Handshake(client.cpu_ns / 1e6, server.cpu_ns / 1e6, client.layer.is_resumed)


def _load(context: ssl.SSLContext, identity: Identity) -> None:
    with pem_file(identity.pem) as path:
        context.load_cert_chain(path)


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m integration.benchmarks.handshake",
        description="Measures TLS handshakes of the client, full and resumed.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--rounds", type=int, default=200)
    chosen = parser.parse_args(given)
    kinds = {
        (name, "yes" if has_certificate else "no"): Peers(
            version, has_client_certificate=has_certificate
        )
        for name, version in _VERSIONS.items()
        for has_certificate in (False, True)
    }
    found: dict[tuple[str, str, bool], list[Handshake]] = {}
    for peers in kinds.values():
        peers.shake(peers.sessions)
    for _ in range(chosen.rounds):
        for kind, peers in kinds.items():
            for sessions in (TlsSessionCache(), peers.sessions):
                shaken = peers.shake(sessions)
                found.setdefault((*kind, shaken.is_resumed), []).append(shaken)
    print("| version | client certificate | session | client, CPU ms | server, CPU ms |")
    print("|---|---|---|---|---|")
    for (version, certificate, is_resumed), rounds in sorted(found.items()):
        if len(rounds) != chosen.rounds:
            raise HarnessError(f"{version}: got {len(rounds)} sessions resumed: {is_resumed}")
        client = Spread.of(each.client_ms for each in rounds)
        server = Spread.of(each.server_ms for each in rounds)
        session = "resumed" if is_resumed else "full"
        times = f"{client.median:.2f} | {server.median:.2f}"
        print(f"| {version} | {certificate} | {session} | {times} |")


if __name__ == "__main__":
    main()
