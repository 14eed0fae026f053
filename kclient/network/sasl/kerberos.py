"""Kerberos by the package gssapi, which calls the Kerberos library of the system."""

import itertools
from importlib import import_module
from typing import Any

from kclient.common.broker_errors import SaslAuthenticationError
from kclient.common.errors import ConfigError, DisconnectedError, KafkaError
from kclient.common.extras import missing_package
from kclient.network.sasl.credentials import KerberosLogin
from kclient.network.sasl.service_tickets import ServiceTicket

_cache_numbers = itertools.count()

# Minor codes of MIT Kerberos.
_KDC_UNREACHABLE = -1765328228
_HINTS = {
    -1765328377: "the KDC knows no such service; check sasl.kerberos.service.name, and that the"
    " broker advertises the host name of its principal",
    -1765328378: "the KDC does not know the principal; check it in sasl.jaas.config and the keytab",
    -1765328347: "the clocks of this machine, of the broker and of the KDC differ too much",
    -1765328352: "the ticket has expired; run kinit, klist shows the tickets",
    -1765328230: "the realm is missing in krb5.conf, the file of KRB5_CONFIG",
}
_NO_TICKET = "run kinit, or set KRB5_CLIENT_KTNAME or keyTab; klist shows the tickets"


def import_gssapi() -> Any:
    """Return the package.

    Raises:
        ConfigError: It is missing, or the Kerberos library of the system is.
    """
    try:
        return import_module("gssapi")
    except (ImportError, OSError) as error:
        raise ConfigError(missing_package("sasl_mechanism GSSAPI", "gssapi", "gssapi")) from error


def acquire_ticket(login: KerberosLogin, host: str) -> ServiceTicket:
    """Request a ticket for the broker at a host; waits for the KDC and the name service.

    The ticket is kept in memory of this process, so that a new context needs no server.

    Raises:
        SaslAuthenticationError: There is no login, or no ticket for this service.
        DisconnectedError: No KDC responds.
    """
    gssapi = import_gssapi()
    service = f"{login.service_name}@{host}"
    flags = gssapi.RequirementFlag
    try:
        credentials = _credentials(gssapi, login)
        target = gssapi.Name(service, gssapi.NameType.hostbased_service)
        # Without mutual authentication the context is complete, and has the name of the principal.
        first = gssapi.SecurityContext(
            name=target, creds=credentials, flags=flags.integrity, usage="initiate"
        )
        first.step()
        principal, lifetime_s = first.target_name, float(first.lifetime)
    except gssapi.exceptions.GSSError as error:
        raise _no_ticket(service, error) from error

    def new_context() -> GssapiContext:
        context = gssapi.SecurityContext(
            name=principal,
            creds=credentials,
            flags=flags.mutual_authentication | flags.integrity,
            usage="initiate",
        )
        return GssapiContext(context, gssapi.exceptions.GSSError)

    return ServiceTicket(lifetime_s, new_context)


def _credentials(gssapi: Any, login: KerberosLogin) -> Any:
    """Return credentials whose tickets are in a cache of their own, which no program changes."""
    cache = f"MEMORY:kclient-{next(_cache_numbers)}"
    name = None
    if login.principal:
        name = gssapi.Name(login.principal, gssapi.NameType.kerberos_principal)
    if login.keytab:
        store = {"client_keytab": login.keytab, "ccache": cache}
        return gssapi.Credentials(name=name, usage="initiate", store=store)
    found = gssapi.Credentials(
        name=name,
        usage="initiate",
        store={"ccache": login.ticket_cache} if login.ticket_cache else None,
    )
    found.store(store={"ccache": cache}, usage="initiate", overwrite=True)
    return gssapi.Credentials(usage="initiate", store={"ccache": cache})


class GssapiContext:
    """Security context of the package."""

    def __init__(self, context: Any, error: type[Exception]) -> None:
        self._context = context
        self._error = error

    @property
    def complete(self) -> bool:
        """Whether both sides have authenticated each other."""
        return bool(self._context.complete)

    @property
    def principal(self) -> str:
        """Kerberos principal of the client."""
        return str(self._context.initiator_name)

    def step(self, token: bytes | None) -> bytes:
        """Return the token that follows one of the broker, or the first."""
        return self._called(self._context.step, token) or b""

    def wrap(self, message: bytes) -> bytes:
        """Return a message with proof of its integrity."""
        wrapped: bytes = self._called(self._context.wrap, message, False).message  # noqa: FBT003
        return wrapped

    def unwrap(self, message: bytes) -> bytes:
        """Return a message of the broker after checking its integrity."""
        unwrapped: bytes = self._called(self._context.unwrap, message).message
        return unwrapped

    def _called(self, function: Any, *arguments: object) -> Any:
        try:
            return function(*arguments)
        except self._error as error:
            raise SaslAuthenticationError(
                f"GSSAPI: the broker could not be authenticated: {_text(error)}"
            ) from error


def _no_ticket(service: str, error: Any) -> KafkaError:
    code = _signed(error.min_code)
    text = f"GSSAPI: no ticket for {service}: {_text(error)}"
    if code == _KDC_UNREACHABLE:
        return DisconnectedError(text)
    return SaslAuthenticationError(f"{text}; {_HINTS.get(code, _NO_TICKET)}")


def _signed(code: int) -> int:
    return code - 2**32 if code >= 2**31 else code


def _text(error: Any) -> str:
    """Return the text of the Kerberos library, or that of the call if there is none."""
    by_library = error.get_all_statuses(error.min_code, is_maj=False)
    general = error.get_all_statuses(error.maj_code, is_maj=True)
    texts = [text for text in by_library if text and text != "Unknown error"] or general
    return "; ".join(texts)
