"""Server of SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677, KIP-84)."""

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from collections.abc import Callable
from typing import NamedTuple

from kclient.common.broker_errors import SaslAuthenticationError
from kclient.common.errors import ProtocolError
from kclient.network.sasl.scram import ScramCredential, ScramMechanism, salt_of
from kclient.network.sasl.server_mechanism import NO_EXPIRY

_NONCE_BYTES = 18
_NAME = rb"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_NONCE = rb"[\x21-\x2b\x2d-\x7e]{1,1024}"
_CLIENT_FIRST = re.compile(
    rb"(?P<header>n,(?:a=(?P<id>%b))?,)"
    rb"(?P<bare>n=(?P<user>%b),r=(?P<nonce>%b)(?P<extensions>(?:,[A-Za-z]+=[^,\x00]+)*))"
    % (_NAME, _NAME, _NONCE)
)
_CLIENT_FINAL = re.compile(
    rb"(?P<without>c=(?P<channel>[A-Za-z0-9+/=]+),r=(?P<nonce>%b)(?:,[A-Za-z]+=[^,\x00]+)*?)"
    rb",p=(?P<proof>[A-Za-z0-9+/=]+)" % _NONCE
)
_TOKEN_EXTENSION = b"tokenauth=true"


class ScramCredentials:
    """Credentials of all users.

    An unknown user gets a false credential, always the same one, so that the exchange does not show
    whether a user exists. Its salt and iteration count are those of Kafka's tools and of ours by
    default. Apache Kafka refuses an unknown user at its first message.

    Args:
        lookup: Returns the credential of a mechanism and a user, or None.
        secret: What false credentials are derived from; clients must not know it.
    """

    def __init__(
        self, lookup: Callable[[ScramMechanism, str], ScramCredential | None], secret: bytes
    ) -> None:
        self._lookup = lookup
        self._secret = secret

    def find(self, mechanism: ScramMechanism, user: str) -> ScramCredential:
        """Return the credential of a user, or a false one."""
        false = self._false_credential(mechanism, user)
        found = self._lookup(mechanism, user)
        return false if found is None else found

    def _false_credential(self, mechanism: ScramMechanism, user: str) -> ScramCredential:
        def derived(use: str) -> bytes:
            text = f"{use} {mechanism.name} {user}".encode()
            return hmac.digest(self._secret, text, mechanism.hash_name)

        return ScramCredential(
            salt_of(derived("salt")),
            derived("stored key"),
            derived("server key"),
            mechanism.least_iterations,
        )


class ScramSaslServer:
    """Server of SCRAM (Kafka: ScramSaslServer)."""

    expires_at_ms = NO_EXPIRY

    def __init__(
        self,
        mechanism: ScramMechanism,
        credentials: ScramCredentials,
        new_nonce: Callable[[], str] = lambda: secrets.token_urlsafe(_NONCE_BYTES),
    ) -> None:
        """Create the server of one exchange; `new_nonce` returns printable text without a comma."""
        self.complete = False
        self.authorization_id = ""
        self._mechanism = mechanism
        self._credentials = credentials
        self._new_nonce = new_nonce
        self._first: _FirstMessages | None = None

    def evaluate_response(self, response: bytes) -> bytes:
        """Return server-first for client-first, and server-final for client-final."""
        if self.complete:
            raise ProtocolError(f"{self._mechanism.name}: got a message after the last one")
        if self._first is None:
            return self._server_first(response)
        return self._server_final(self._first, response)

    def _server_first(self, message: bytes) -> bytes:
        found = _CLIENT_FIRST.fullmatch(message)
        if found is None:
            raise self._malformed("first", message)
        if _TOKEN_EXTENSION in found["extensions"].split(b","):
            raise ProtocolError(f"{self._mechanism.name}: delegation tokens are not available")
        user = _unescaped(found["user"])
        if found["id"] is not None and _unescaped(found["id"]) != user:
            raise SaslAuthenticationError(
                "Authentication failed: Client requested an authorization id that is different"
                " from username"
            )
        credential = self._credentials.find(self._mechanism, user)
        nonce = found["nonce"] + self._new_nonce().encode()
        salt = base64.b64encode(credential.salt)
        message = b"r=%b,s=%b,i=%d" % (nonce, salt, credential.iterations)
        channel = base64.b64encode(found["header"])
        self._first = _FirstMessages(user, credential, channel, nonce, found["bare"], message)
        return message

    def _server_final(self, first: "_FirstMessages", message: bytes) -> bytes:
        found = _CLIENT_FINAL.fullmatch(message)
        if found is None:
            raise self._malformed("final", message)
        if found["channel"] != first.channel or found["nonce"] != first.nonce:
            raise ProtocolError(
                f"{self._mechanism.name}: got another header or nonce in the client's final message"
            )
        signed = b",".join((first.client_first, first.server_first, found["without"]))
        self._verify(first.credential, signed, found["proof"])
        signature = hmac.digest(first.credential.server_key, signed, self._mechanism.hash_name)
        self.authorization_id = first.user
        self.complete = True
        return b"v=" + base64.b64encode(signature)

    def _verify(self, credential: ScramCredential, signed: bytes, encoded_proof: bytes) -> None:
        try:
            proof = base64.b64decode(encoded_proof, validate=True)
        except binascii.Error:
            raise self._malformed("final", encoded_proof) from None
        signature = hmac.digest(credential.stored_key, signed, self._mechanism.hash_name)
        if len(proof) != len(signature):
            raise self._malformed("final", encoded_proof)
        client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
        stored = hashlib.new(self._mechanism.hash_name, client_key).digest()
        if not hmac.compare_digest(stored, credential.stored_key):
            raise ProtocolError(f"{self._mechanism.name}: the client's proof is wrong")

    def _malformed(self, kind: str, message: bytes) -> ProtocolError:
        return ProtocolError(
            f"{self._mechanism.name}: got a malformed {kind} message of {len(message)} bytes"
        )


class _FirstMessages(NamedTuple):
    """Content of the first two messages.

    Attributes:
        user: User name.
        credential: Credential of the user, or a false one.
        channel: Header of the client's first message in base64, which its final message repeats.
        nonce: Nonces of both sides.
        client_first: Message of the client without its header.
        server_first: Message of the server.
    """

    user: str
    credential: ScramCredential
    channel: bytes
    nonce: bytes
    client_first: bytes
    server_first: bytes


def _unescaped(name: bytes) -> str:
    return name.replace(b"=2C", b",").replace(b"=3D", b"=").decode("ascii")
