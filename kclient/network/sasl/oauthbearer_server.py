"""Server of OAUTHBEARER: a token that an identity provider has signed (RFC 7628, KIP-255)."""

import re
from typing import Protocol

from kclient.common.broker_errors import SaslAuthenticationError
from kclient.common.errors import ProtocolError
from kclient.network.sasl.json_web_token import AcceptedToken
from kclient.network.sasl.server_mechanism import NO_EXPIRY, shown_name

_NAME = rb"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_PAIR = rb"[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01"
_INITIAL = re.compile(rb"n,(?:a=(?P<id>%b))?,\x01(?P<pairs>(?:%b)*)\x01" % (_NAME, _PAIR))
_AUTHORIZATION = re.compile(r"bearer +(?P<token>[A-Za-z0-9._-]+)", re.IGNORECASE | re.ASCII)
_REFUSED = '{"status":"invalid_token"}'
_ACKNOWLEDGEMENT = b"\x01"


class Validator(Protocol):
    """Validation of tokens."""

    def validate(self, text: str) -> AcceptedToken:
        """Return the principal of a token.

        Raises:
            ProtocolError: The token is refused.
        """
        ...


class OAuthBearerSaslServer:
    """Server of OAUTHBEARER (Kafka: OAuthBearerSaslServer).

    A refused token has a response with the status, which the client acknowledges; the
    authentication fails then. SASL extensions are ignored.
    """

    def __init__(self, validator: Validator) -> None:
        self.complete = False
        self.authorization_id = ""
        self.expires_at_ms = NO_EXPIRY
        self._validator = validator
        self._refusal: ProtocolError | None = None

    def evaluate_response(self, response: bytes) -> bytes:
        """Validate the token in the client's first message."""
        if self._refusal is not None:
            if response == _ACKNOWLEDGEMENT:
                raise SaslAuthenticationError(_REFUSED) from self._refusal
            raise ProtocolError("OAUTHBEARER: got another message than an acknowledgement")
        found = _INITIAL.fullmatch(response)
        if found is None:
            raise ProtocolError(f"OAUTHBEARER: got a malformed message of {len(response)} bytes")
        text = _token_of(found["pairs"])
        try:
            token = self._validator.validate(text)
        except ProtocolError as error:
            self._refusal = error
            return _REFUSED.encode()
        requested = _unescaped(found["id"] or b"")
        if requested not in ("", token.name):
            raise SaslAuthenticationError(
                "Authentication failed: Client requested an authorization id"
                f" ({shown_name(requested)}) that is different from the token's principal name"
                f" ({shown_name(token.name)})"
            )
        self.authorization_id, self.expires_at_ms = token
        self.complete = True
        return b""


def _token_of(pairs: bytes) -> str:
    values = [pair.partition(b"=") for pair in pairs.split(b"\x01") if pair]
    given = [value.decode("ascii") for key, _, value in values if key == b"auth"]
    found = _AUTHORIZATION.fullmatch(given[0]) if len(given) == 1 else None
    if found is None:
        raise ProtocolError("OAUTHBEARER: got a message without exactly one token")
    return found["token"]


def _unescaped(name: bytes) -> str:
    return name.replace(b"=2C", b",").replace(b"=3D", b"=").decode("ascii")
