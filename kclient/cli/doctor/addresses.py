"""Checks of one address: its name, its port, and its certificate."""

import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from kclient.cli.doctor.report import Findings, Status
from kclient.common.errors import DisconnectedError, SslAuthenticationError
from kclient.common.runtime import Address
from kclient.network.connection_check import check_connect, check_handshake
from kclient.network.security_config import SecurityConfig
from kclient.network.system_net import SystemNet

_NEAR_EXPIRY = timedelta(days=14)
_REMEDY_OF_TLS = (
    "the port must be that of a listener with TLS, and ssl.truststore.location must hold the "
    "issuer of its certificate"
)


class AddressChecks:
    """Checks names, ports and certificates, in the order in which a connection needs them."""

    def __init__(self, report: Findings, security: SecurityConfig, timeout: float) -> None:
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
            check_connect(address, self._timeout)
        except OSError as error:
            what = f"{address[0]}: {error.strerror or error}"
            self._report.add(Status.FAILED, "TCP", target, what, remedy)
            return False
        what = f"connected to {address[0]} ({_milliseconds(started)})"
        self._report.add(Status.OK, "TCP", target, what)
        return True

    def _handshake(self, address: Address, host: str, target: str) -> bool:
        try:
            session = check_handshake(address, host, self._security, self._timeout)
        except (SslAuthenticationError, DisconnectedError) as error:
            self._report.add(Status.FAILED, "TLS", target, f"{error}", _REMEDY_OF_TLS)
            return False
        names = ", ".join(session.names) or "without names"
        found = f"{session.version}, {session.cipher}, certificate {names}"
        status, remedy = Status.OK, None
        if session.expiry is not None:
            found += f", valid until {session.expiry:%Y-%m-%d}"
            if session.expiry - datetime.now(UTC) < _NEAR_EXPIRY:
                status = Status.WARNING
                remedy = "renew the certificate of the listener before it expires"
        self._report.add(status, "TLS", target, found, remedy)
        return True


def _milliseconds(started: float) -> str:
    return f"{(time.monotonic() - started) * 1000:.0f} ms"
