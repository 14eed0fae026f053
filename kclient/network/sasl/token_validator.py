"""Validation of tokens by the keys in a file (Kafka: BrokerJwtValidator)."""

import os
from pathlib import Path

from kclient.common.errors import ConfigError, ProtocolError
from kclient.common.runtime import Clock
from kclient.network.sasl.json_web_keys import (
    VerificationKey,
    key_of,
    parse_keys,
    verify_signature,
)
from kclient.network.sasl.json_web_token import (
    AcceptedToken,
    ClaimRules,
    check_claims,
    parse_token,
)

_MAX_FILE = 1 << 20
_CHECK_INTERVAL_MS = 1000.0


class TokenValidator:
    """Validates tokens for one network thread.

    If a token names an unknown key, the file is read again, if it has changed, at most once a
    second: identity providers change their keys. A file that cannot be read leaves the old ones.
    """

    def __init__(self, setting: str, path: str, rules: ClaimRules, clock: Clock) -> None:
        """Create a validator.

        Args:
            setting: Name of the setting with the file, for errors.
            path: File with a JSON Web Key Set.
            rules: What the claims must have.
            clock: Clock for the validity of tokens.

        Raises:
            ConfigError: The file cannot be read, or has no keys.
        """
        self._path = path
        self._rules = rules
        self._clock = clock
        self._next_check_ms = 0.0
        try:
            self._version = self._version_of_file()
            self._keys = self._read()
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"{setting}: got {path!r:.200}, expected a file with a JSON Web Key Set; {error}"
            ) from None

    def validate(self, text: str) -> AcceptedToken:
        """Return the principal of a token.

        Raises:
            ProtocolError: The token is refused.
        """
        token = parse_token(text)
        key = key_of(token, self._keys)
        if key is None and self._reload():
            key = key_of(token, self._keys)
        if key is None:
            raise ProtocolError("token: it names no key of the identity provider")
        verify_signature(token, key)
        return check_claims(token.claims, self._rules, self._clock.wall_ms() / 1000)

    def _reload(self) -> bool:
        """Read the file again if it has changed; return whether there are other keys."""
        now_ms = self._clock.monotonic_ms()
        if now_ms < self._next_check_ms:
            return False
        self._next_check_ms = now_ms + _CHECK_INTERVAL_MS
        try:
            version = self._version_of_file()
            if version == self._version:
                return False
            self._keys, self._version = self._read(), version
        except (OSError, ValueError, ProtocolError):
            return False
        return True

    def _version_of_file(self) -> tuple[int, int, int]:
        status = os.stat(self._path)
        return status.st_mtime_ns, status.st_ino, status.st_size

    def _read(self) -> list[VerificationKey]:
        with Path(self._path).open("rb") as file:
            data = file.read(_MAX_FILE + 1)
        if len(data) > _MAX_FILE:
            raise ValueError(f"it is larger than {_MAX_FILE} bytes")
        return parse_keys(data)
