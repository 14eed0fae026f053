"""GSSAPI: authentication by a Kerberos ticket (RFC 4752)."""

from collections.abc import Callable
from typing import Protocol

from kclient.common.broker_errors import SaslAuthenticationError

GSSAPI = "GSSAPI"

_NO_SECURITY_LAYER = 1  # bit of the layers that a broker offers
_OFFER_SIZE = 4  # layers, and the largest message of them in 3 bytes


class GssContext(Protocol):
    """Security context of an exchange (RFC 2743). Its calls do not wait for a server.

    Its methods raise SaslAuthenticationError if a token is wrong.
    """

    @property
    def complete(self) -> bool:
        """Whether both sides have authenticated each other."""
        ...

    @property
    def principal(self) -> str:
        """Kerberos principal of the client, when the context is complete."""
        ...

    def step(self, token: bytes | None) -> bytes:
        """Return the token that follows one of the broker, or the first; it may be empty."""
        ...

    def wrap(self, message: bytes) -> bytes:
        """Return a message with proof of its integrity."""
        ...

    def unwrap(self, message: bytes) -> bytes:
        """Return a message of the broker after checking its integrity."""
        ...


class GssapiSaslClient:
    """Client of GSSAPI (Java: GssKrb5Client).

    Tokens are exchanged until the security context is complete. Then the broker offers layers of
    protection for the connection; no layer is selected, as TLS protects it.
    """

    mechanism = GSSAPI
    identity = "the Kerberos ticket"
    hint = (
        "check sasl.kerberos.service.name, the broker's keytab and the clocks; klist shows the"
        " tickets"
    )

    def __init__(self, new_context: Callable[[], GssContext]) -> None:
        """Create the client of one exchange; `new_context` may raise, see `ServiceTickets`."""
        self._new_context = new_context
        self._context: GssContext | None = None
        self._has_selected_layer = False

    def initial_response(self) -> bytes:
        """Return the first token, with the ticket."""
        self._context = self._new_context()
        return self._context.step(None)

    def evaluate_challenge(self, challenge: bytes) -> bytes | None:
        """Return the next token of the context, or the selected layer."""
        context = self._context
        if context is None or self._has_selected_layer:
            if challenge:
                raise _refused(f"a further token of {len(challenge)} bytes", "none")
            return None
        if not context.complete:
            return context.step(challenge)
        offer = context.unwrap(challenge)
        if len(offer) != _OFFER_SIZE:
            raise _refused(f"an offer of {len(offer)} bytes", f"{_OFFER_SIZE}")
        if not offer[0] & _NO_SECURITY_LAYER:
            raise _refused("an offer of security layers alone", "one without; use SASL_SSL")
        self._has_selected_layer = True
        layer = bytes((_NO_SECURITY_LAYER, 0, 0, 0))
        return context.wrap(layer + context.principal.encode())


def _refused(got: str, expected: str) -> SaslAuthenticationError:
    return SaslAuthenticationError(f"GSSAPI: got {got} from the broker, expected {expected}")
