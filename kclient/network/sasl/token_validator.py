"""Validation of tokens by the keys of an identity provider (Kafka: BrokerJwtValidator)."""

import http.client

from kclient.common.errors import ConfigError, ProtocolError
from kclient.common.runtime import Clock
from kclient.network.sasl.json_web_keys import key_of, verify_signature
from kclient.network.sasl.json_web_token import (
    AcceptedToken,
    ClaimRules,
    check_claims,
    parse_token,
)
from kclient.network.sasl.key_sets import KeySet, described


class TokenValidator:
    """Validates tokens for one network thread."""

    def __init__(self, setting: str, source: KeySet, rules: ClaimRules, clock: Clock) -> None:
        """Create a validator, and load the keys.

        Args:
            setting: Name of the setting with the source, for errors.
            source: Keys of the identity provider.
            rules: What the claims must have.
            clock: Clock for the validity of tokens.

        Raises:
            ConfigError: The source cannot be read, or has no keys.
        """
        self._source = source
        self._rules = rules
        self._clock = clock
        try:
            self._keys = source.load()
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise ConfigError(
                f"{setting}: got {source.name!r:.200}, expected a JSON Web Key Set;"
                f" {described(error)}"
            ) from None

    def validate(self, text: str) -> AcceptedToken:
        """Return the principal of a token.

        Raises:
            ProtocolError: The token is refused.
        """
        token = parse_token(text)
        self._keys = self._source.changed(is_incomplete=False) or self._keys
        key = key_of(token, self._keys)
        if key is None:
            self._keys = self._source.changed(is_incomplete=True) or self._keys
            key = key_of(token, self._keys)
        if key is None:
            raise ProtocolError("token: it names no key of the identity provider")
        verify_signature(token, key)
        return check_claims(token.claims, self._rules, self._clock.wall_ms() / 1000)
