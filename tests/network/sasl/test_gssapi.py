"""GSSAPI: the exchange with a scripted security context, and tickets that are requested in time."""

import importlib
import threading
from collections.abc import Callable
from typing import Any, NoReturn

import pytest

from kclient import Producer
from kclient.common.broker_errors import SaslAuthenticationError
from kclient.common.errors import ConfigError, CredentialsPendingError, DisconnectedError
from kclient.common.log_context import NO_LOG_CONTEXT
from kclient.network.sasl.credentials import KerberosLogin
from kclient.network.sasl.gssapi import GssapiSaslClient
from kclient.network.sasl.service_tickets import ServiceTicket, ServiceTickets
from kclient.network.system_runtime import system_runtime
from tests.support.checks.waiting import wait_until
from tests.support.virtual.virtual_home import VirtualHome

LOGIN = KerberosLogin("kafka", "", "", "")


class ScriptedContext:
    """Context with given tokens; it is complete after the last one. Wrapped text is in brackets."""

    principal = "alice@REALM"

    def __init__(self, *tokens: bytes) -> None:
        self._tokens = list(tokens)
        self.received: list[bytes | None] = []

    @property
    def complete(self) -> bool:
        return not self._tokens

    def step(self, token: bytes | None) -> bytes:
        self.received.append(token)
        return self._tokens.pop(0)

    def wrap(self, message: bytes) -> bytes:
        return b"[%s]" % message

    def unwrap(self, message: bytes) -> bytes:
        return message.removeprefix(b"[").removesuffix(b"]")


def test_no_layer_is_selected_when_the_context_is_complete() -> None:
    context = ScriptedContext(b"request", b"more", b"")
    client = GssapiSaslClient(lambda: context)
    assert client.initial_response() == b"request"
    assert client.evaluate_challenge(b"reply") == b"more"
    assert client.evaluate_challenge(b"last") == b""
    assert context.received == [None, b"reply", b"last"]
    assert client.evaluate_challenge(b"[\x07\x00\xff\xff]") == b"[\x01\x00\x00\x00alice@REALM]"
    assert client.evaluate_challenge(b"") is None
    with pytest.raises(SaslAuthenticationError, match="got a further token of 1 bytes from the br"):
        client.evaluate_challenge(b"x")


@pytest.mark.parametrize(
    ("offer", "text"),
    [
        (
            b"\x06\x00\xff\xff",
            "got an offer of security layers alone from the broker, expected one",
        ),
        (b"\x01\x00\x00", "got an offer of 3 bytes from the broker, expected 4"),
        (b"\x01\x00\x00\x00\x00", "got an offer of 5 bytes from the broker, expected 4"),
        (b"", "got an offer of 0 bytes from the broker, expected 4"),
    ],
)
def test_other_offers_are_refused(offer: bytes, text: str) -> None:
    client = GssapiSaslClient(lambda: ScriptedContext(b"request"))
    client.initial_response()
    with pytest.raises(SaslAuthenticationError, match=text):
        client.evaluate_challenge(b"[%s]" % offer)


def refuse(_login: KerberosLogin, _host: str) -> NoReturn:
    raise SaslAuthenticationError("no ticket")


class Kdc:
    """Source of tickets in virtual time."""

    def __init__(self) -> None:
        self.home = VirtualHome()
        self.requested: list[str] = []
        self.lifetime_s = 600.0
        self.respond: Callable[[KerberosLogin, str], ServiceTicket] = self._ticket
        self.tickets = ServiceTickets(self._acquire, self.home.runtime, NO_LOG_CONTEXT)

    def _acquire(self, login: KerberosLogin, host: str) -> ServiceTicket:
        return self.respond(login, host)

    def _ticket(self, _login: KerberosLogin, host: str) -> ServiceTicket:
        self.requested.append(host)
        number = b"%d" % len(self.requested)
        return ServiceTicket(self.lifetime_s, lambda: ScriptedContext(number))

    def first_token(self, host: str = "a") -> bytes | None:
        """Return the first token of a context with a ticket; None while it is requested."""
        try:
            return self.tickets.new_context(LOGIN, host).step(None)
        except DisconnectedError:
            return None
        finally:
            self.home.sleep(1)


def test_ticket_is_requested_once_for_each_host() -> None:
    kdc = Kdc()
    with pytest.raises(
        CredentialsPendingError, match="a ticket for a is requested before the connection"
    ):
        kdc.tickets.new_context(LOGIN, "a")
    kdc.home.sleep(1)
    assert [kdc.first_token(), kdc.first_token(), kdc.first_token("b")] == [b"1", b"1", None]
    assert [kdc.first_token("b"), kdc.first_token()] == [b"2", b"1"]
    assert kdc.requested == ["a", "b"]


@pytest.mark.parametrize(("lifetime_s", "used_s"), [(600, 600), (36_000, 3_600)])
def test_ticket_is_refreshed_while_it_is_used(lifetime_s: float, used_s: float) -> None:
    kdc = Kdc()
    kdc.lifetime_s = lifetime_s
    assert [kdc.first_token(), kdc.first_token()] == [None, b"1"]
    kdc.home.sleep(790 * used_s)
    assert [kdc.first_token(), kdc.first_token()] == [b"1", b"1"]
    kdc.home.sleep(10 * used_s)
    assert [kdc.first_token(), kdc.first_token()] == [b"1", b"2"]
    kdc.home.sleep(1000 * used_s)
    assert [kdc.first_token(), kdc.first_token()] == [None, b"3"]


def test_refusal_is_raised_and_requested_again(caplog: pytest.LogCaptureFixture) -> None:
    kdc = Kdc()
    issue, kdc.respond = kdc.respond, refuse
    assert kdc.first_token() is None
    for _ in range(2):
        with pytest.raises(SaslAuthenticationError, match="no ticket"):
            kdc.first_token()
        assert kdc.first_token() is None
    kdc.respond = issue
    with pytest.raises(SaslAuthenticationError, match="no ticket"):
        kdc.first_token()
    assert [kdc.first_token(), kdc.first_token()] == [None, b"1"]
    kdc.respond = refuse
    kdc.home.sleep(500_000)
    assert [kdc.first_token(), kdc.first_token()] == [b"1", b"1"]
    assert "the ticket for a could not be refreshed: no ticket" in caplog.text


def test_unreachable_kdc_is_named_while_the_ticket_is_requested_again() -> None:
    def fail(_login: KerberosLogin, _host: str) -> NoReturn:
        raise DisconnectedError("cannot contact any KDC")

    kdc = Kdc()
    issue, kdc.respond = kdc.respond, fail
    assert kdc.first_token() is None
    for _ in range(3):
        with pytest.raises(DisconnectedError, match="cannot contact any KDC"):
            kdc.tickets.new_context(LOGIN, "a")
        kdc.home.sleep(1)
    kdc.respond = issue
    assert [kdc.first_token(), kdc.first_token()] == [None, b"1"]


def test_slow_kdc_does_not_block_the_caller() -> None:
    released = threading.Event()
    threads: list[threading.Thread] = []

    def acquire(_login: KerberosLogin, _host: str) -> ServiceTicket:
        threads.append(threading.current_thread())
        assert released.wait(20)
        return ServiceTicket(60, lambda: ScriptedContext(b"request"))

    tickets = ServiceTickets(acquire, system_runtime(), NO_LOG_CONTEXT)

    def found() -> bytes | None:
        try:
            return tickets.new_context(LOGIN, "a").step(None)
        except DisconnectedError:
            return None

    assert [found() for _ in range(3)] == [None] * 3
    released.set()
    assert wait_until(found, "the ticket is there", 20) == b"request"
    assert len(threads) == 1
    assert threads[0] is not threading.current_thread()


def test_missing_package_is_reported_when_a_client_is_created(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(name: str) -> Any:
        if name == "gssapi":
            raise ImportError(name)
        return importlib.import_module(name)

    monkeypatch.setattr("kclient.network.sasl.kerberos.import_module", missing)
    with pytest.raises(ConfigError, match="'gssapi' package is missing; pip install gssapi"):
        Producer(
            bootstrap_servers="a:1",
            security_protocol="SASL_SSL",
            sasl_mechanism="GSSAPI",
            sasl_kerberos_service_name="kafka",
        )
