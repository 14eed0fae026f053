"""Arguments of the storage tool for SCRAM credentials (Kafka: ScramParser)."""

import base64
import binascii
from collections.abc import Iterable

from kclient.broker.metadata.scram_credentials import scram_record
from kclient.common.errors import ConfigError
from kclient.network.sasl.scram import (
    SCRAM_MECHANISMS,
    ScramMechanism,
    random_salt,
    salted_password,
)
from kclient.protocol.messages.metadata_records import UserScramCredentialRecord

_DEFAULT_ITERATIONS = 4096
_MAX_DIGITS = 10
_FORM = "MECHANISM=[name=USER,password=PASSWORD]"
_NAME, _PASSWORD, _SALTED = "name", "password", "saltedpassword"
_SALT, _ITERATIONS = "salt", "iterations"
_KEYS = (_NAME, _PASSWORD, _SALTED, _SALT, _ITERATIONS)


def parse_scram_credentials(arguments: Iterable[str]) -> list[UserScramCredentialRecord]:
    """Parse arguments as ``SCRAM-SHA-256=[name=alice,password=alice-secret]``.

    The keys are name, password or saltedpassword (base64), salt (base64; random with a password)
    and iterations. A value may be in double quotes, and has no comma.

    Raises:
        ConfigError: An argument has another form, or two are of one user and mechanism. The text
            has no value but those of mechanism, name and iterations.
    """
    records: dict[tuple[int, str], UserScramCredentialRecord] = {}
    for argument in arguments:
        record = _parse(argument.strip())
        key = (record.mechanism, record.name)
        if key in records:
            raise ConfigError(
                f"SCRAM credential: got user {record.name!r:.80} twice with the same mechanism"
            )
        records[key] = record
    return list(records.values())


def _parse(argument: str) -> UserScramCredentialRecord:
    name, equals, config = argument.partition("=")
    if not (equals and config.startswith("[") and config.endswith("]")):
        raise ConfigError(f"SCRAM credential: got an argument of another form than {_FORM}")
    mechanism = SCRAM_MECHANISMS.get(name)
    if mechanism is None:
        raise ConfigError(
            f"SCRAM credential: got mechanism {name!r:.80}, expected "
            f"{' or '.join(SCRAM_MECHANISMS)}"
        )
    values = _values(config[1:-1])
    user = values.get(_NAME)
    if not user:
        raise ConfigError(f"SCRAM credential: got no name, expected {_FORM}")
    return _Credential(mechanism, user, values).record()


def _values(config: str) -> dict[str, str]:
    values: dict[str, str] = {}
    for component in config.split(","):
        key, equals, value = component.partition("=")
        key, value = key.strip(), value.strip()
        if not equals or key not in _KEYS:
            # Any of it may be a part of a password with a comma.
            raise ConfigError(
                "SCRAM credential: got a part that is no KEY=VALUE, expected a list of "
                f"{', '.join(_KEYS)}; values have no comma"
            )
        if key in values:
            raise ConfigError(f"SCRAM credential: got {key} twice, expected it once")
        if len(value) > 1 and value.startswith('"') and value.endswith('"'):
            value = value[1:-1]
        values[key] = value
    return values


class _Credential:
    """Credential of the values of an argument."""

    def __init__(self, mechanism: ScramMechanism, user: str, values: dict[str, str]) -> None:
        self._mechanism = mechanism
        self._user = user
        self._values = values

    def record(self) -> UserScramCredentialRecord:
        """Return the record.

        Raises:
            ConfigError: Values are missing, or contradict each other.
        """
        iterations = self._iterations()
        password, salt = self._values.get(_PASSWORD), self._bytes(_SALT)
        salted = self._bytes(_SALTED)
        if (password is None) == (salted is None):
            raise self._refused(f"both or none of {_PASSWORD} and {_SALTED}", "one of them")
        if salted is not None:
            if salt is None:
                raise self._refused(f"{_SALTED} without {_SALT}", "both")
        else:
            if not password:
                raise self._refused("an empty password", "at least one character")
            salt = random_salt() if salt is None else salt
            hash_name = self._mechanism.hash_name
            salted = salted_password(hash_name, password.encode(), salt, iterations)
        return scram_record(self._mechanism, self._user, iterations, salt=salt, salted=salted)

    def _iterations(self) -> int:
        text = self._values.get(_ITERATIONS, str(_DEFAULT_ITERATIONS))
        least, most = self._mechanism.least_iterations, self._mechanism.most_iterations
        is_number = text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS
        if not (is_number and least <= int(text) <= most):
            raise self._refused(f"iterations {text!r:.20}", f"{least} to {most}")
        return int(text)

    def _bytes(self, key: str) -> bytes | None:
        text = self._values.get(key)
        if text is None:
            return None
        try:
            value = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            value = b""
        if not value:
            raise self._refused(f"{key} of {len(text)} characters", "base64")
        return value

    def _refused(self, got: str, expected: str) -> ConfigError:
        return ConfigError(
            f"SCRAM credential of user {self._user!r:.80}: got {got}, expected {expected}"
        )
