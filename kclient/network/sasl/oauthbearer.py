"""OAUTHBEARER: a token that another service has issued (RFC 7628, KIP-255)."""

from kclient.common.broker_errors import SaslAuthenticationError
from kclient.network.sasl.credentials import OAuthBearerToken

OAUTHBEARER = "OAUTHBEARER"

_SEPARATOR = b"\x01"
_LONGEST_REASON = 300


class OAuthBearerSaslClient:
    """Client of OAUTHBEARER (Kafka: OAuthBearerSaslClient)."""

    mechanism = OAUTHBEARER
    identity = "the token"
    hint = "check its issuer, its audience, its expiry and the clocks"

    def __init__(self, token: OAuthBearerToken) -> None:
        self._token = token
        self._failed = False

    def initial_response(self) -> bytes:
        """Return the token with its extensions."""
        pairs = {"auth": f"Bearer {self._token.value.reveal()}", **self._token.extensions}
        parts = [f"{key}={value}".encode() for key, value in pairs.items()]
        return _SEPARATOR.join((b"n,,", *parts, b"", b""))

    def evaluate_challenge(self, challenge: bytes) -> bytes | None:
        """Acknowledge the reason of a refusal, which the error of the broker repeats."""
        if not challenge:
            return None
        if self._failed:
            raise SaslAuthenticationError(
                f"OAUTHBEARER: got a further token of {len(challenge)} bytes, expected none"
            )
        self._failed = True
        return _SEPARATOR
