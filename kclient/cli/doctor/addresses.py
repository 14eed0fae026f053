"""Checks of one address: its name, its port, and its certificate."""

import socket
import ssl
import threading
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from kclient.cli.doctor.report import Report, Status
from kclient.common.errors import KafkaError
from kclient.common.runtime import Address
from kclient.network.security_config import SecurityConfig
from kclient.network.system_net import SystemNet
from kclient.network.tls.client_context import client_context
from kclient.network.tls.handshake_failures import closed_in_handshake, handshake_failure

_NEAR_EXPIRY = timedelta(days=14)
_REMEDY_OF_TLS = (
    "the port must be that of a listener with TLS, and ssl.truststore.location must hold the "
    "issuer of its certificate"
)


class AddressChecks:
    """Checks names, ports and certificates, in the order in which a connection needs them."""

    def __init__(self, report: Report, security: SecurityConfig, timeout: float) -> None:
        """Create the checks.

        Args:
            report: Receives the findings.
            security: How the client protects its connections.
            timeout: Longest wait of a check, seconds.
        """
        self._report = report
        self._security = security
        self._timeout = timeout

    def run(self, address: Address, remedy: str) -> bool:
        """Check an address; return whether a connection can be made.

        Args:
            address: Host and port.
            remedy: What to do if the name is unknown or the port is closed.
        """
        target = "{}:{}".format(*address)
        found = self._look_up(address, target, remedy)
        connected = [each for each in found if self._connect(each, target, remedy)]
        if not connected:
            return False
        return not self._security.uses_ssl or self._handshake(connected[0], address[0], target)

    def _look_up(self, address: Address, target: str, remedy: str) -> Sequence[Address]:
        ended = threading.Event()
        started = time.monotonic()
        look_up = SystemNet().look_up(*address, ended.set)
        if not look_up.done() and not ended.wait(self._timeout):
            self._report.add(
                Status.FAILED,
                "DNS",
                target,
                f"no response of the resolver in {self._timeout:g} s",
                "check /etc/resolv.conf, and that the name servers can be reached",
            )
            return []
        try:
            found = look_up.addresses()
        except OSError as error:
            self._report.add(Status.FAILED, "DNS", target, f"{error.strerror or error}", remedy)
            return []
        hosts = ", ".join(dict.fromkeys(host for host, _ in found))
        self._report.add(Status.OK, "DNS", target, f"{hosts} ({_milliseconds(started)})")
        return found

    def _connect(self, address: Address, target: str, remedy: str) -> bool:
        started = time.monotonic()
        try:
            with socket.create_connection(address, self._timeout):
                pass
        except OSError as error:
            what = f"{address[0]}: {error.strerror or error}"
            self._report.add(Status.FAILED, "TCP", target, what, remedy)
            return False
        what = f"connected to {address[0]} ({_milliseconds(started)})"
        self._report.add(Status.OK, "TCP", target, what)
        return True

    def _handshake(self, address: Address, host: str, target: str) -> bool:
        context = client_context(self._security)
        verified = host if context.check_hostname else ""
        try:
            with (
                socket.create_connection(address, self._timeout) as stream,
                context.wrap_socket(
                    stream, server_hostname=host, do_handshake_on_connect=False
                ) as secured,
            ):
                try:
                    secured.do_handshake()
                except ssl.SSLError as error:
                    raise handshake_failure(error, secured, verified) from None
                self._show_session(secured, target)
        except (KafkaError, OSError) as error:
            failure = closed_in_handshake() if isinstance(error, OSError) else error
            self._report.add(Status.FAILED, "TLS", target, f"{failure}", _REMEDY_OF_TLS)
            return False
        return True

    def _show_session(self, secured: ssl.SSLSocket, target: str) -> None:
        cipher = secured.cipher() or ("unknown cipher",)
        certificate: Mapping[str, Any] = secured.getpeercert() or {}
        expiry = _expiry(certificate)
        found = f"{secured.version()}, {cipher[0]}, certificate {_names(certificate)}"
        if expiry is None:
            self._report.add(Status.OK, "TLS", target, found)
            return
        found += f", valid until {expiry:%Y-%m-%d}"
        if expiry - datetime.now(UTC) > _NEAR_EXPIRY:
            self._report.add(Status.OK, "TLS", target, found)
        else:
            remedy = "renew the certificate of the listener before it expires"
            self._report.add(Status.WARNING, "TLS", target, found, remedy)


def _names(certificate: Mapping[str, Any]) -> str:
    return ", ".join(name for _, name in certificate.get("subjectAltName", ())) or "without names"


def _expiry(certificate: Mapping[str, Any]) -> datetime | None:
    given = certificate.get("notAfter")
    if given is None:
        return None
    return datetime.fromtimestamp(ssl.cert_time_to_seconds(given), UTC)


def _milliseconds(started: float) -> str:
    return f"{(time.monotonic() - started) * 1000:.0f} ms"
