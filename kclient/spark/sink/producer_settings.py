"""The producer configuration of a sink, as it is sent from the driver to the workers."""

import hashlib
from collections.abc import Mapping
from typing import Final

from kclient.common.config_def import describe
from kclient.common.errors import ConfigError
from kclient.producer.producer_config import PRODUCER_CONFIG
from kclient.spark.options.kafka_config import RESERVED_BY_SINK, admin_config
from kclient.spark.options.secret_options import resolved

_NO_ACKS: Final = frozenset({"0", 0})


class ProducerSettings:
    """A validated producer configuration that can be pickled; its text contains no values.

    Attributes:
        digest: Hash of the configuration; equal settings have equal digests.
    """

    __slots__ = ("_given", "digest")

    def __init__(self, conf: object) -> None:
        """Validate the options without opening a connection.

        Args:
            conf: Options of a producer by dotted name.

        Raises:
            ConfigError: An option is unknown, wrong or reserved by the sink.
        """
        if not isinstance(conf, Mapping):
            raise ConfigError(
                f"conf: got {describe(conf)}, expected a dict of producer options, such as "
                "{'bootstrap.servers': 'host:9092'}"
            )
        given: dict[str, object] = {_dotted(name): value for name, value in conf.items()}
        if len(given) < len(conf):
            raise ConfigError("conf: an option is given twice, with dots and with underscores")
        for name, value in given.items():
            _check(name, value)
        self._given = given
        PRODUCER_CONFIG.parse(self.config())
        text = "\n".join(f"{name}={value!r}" for name, value in sorted(self._given.items()))
        self.digest = hashlib.sha256(text.encode()).hexdigest()[:16]

    def config(self) -> dict[str, object]:
        """Return the options for the producer, with the secrets that references name.

        Raises:
            ConfigError: A variable or a file with a secret does not exist in this process.
        """
        return resolved(self._given)

    def admin_config(self) -> dict[str, object]:
        """Return those of the options that an admin client has, too; raises as `config`."""
        return admin_config(self._given)

    def __repr__(self) -> str:
        return f"ProducerSettings({self.digest})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ProducerSettings) and self._given == other._given

    def __hash__(self) -> int:
        return hash(self.digest)


def _dotted(name: object) -> str:
    if not isinstance(name, str):
        raise ConfigError(f"conf: got the option {describe(name)}, expected names as str")
    return name.replace("_", ".")


def _check(name: str, value: object) -> None:
    if name in RESERVED_BY_SINK:
        raise ConfigError(f"{name}: got a value, expected none; {RESERVED_BY_SINK[name]}")
    if value is not None and not isinstance(value, str | int | float):
        # The text of an object may be the same for two configurations, and may contain a secret.
        raise ConfigError(
            f"{name}: got an object of type {type(value).__name__}, expected str, a number, "
            "True or False; it is sent to the workers as text"
        )
    if name == "acks" and not isinstance(value, bool) and value in _NO_ACKS:
        raise ConfigError(
            "acks: got 0, expected 'all' or 1; a sink waits for every acknowledgement, and acks=0 "
            "has none"
        )
