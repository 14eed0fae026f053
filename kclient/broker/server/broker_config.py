"""Validated configuration of a broker (Kafka: KafkaConfig)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kclient.broker.server.broker_keys import BROKER_KEYS
from kclient.broker.server.listeners import parse_listeners
from kclient.common.config_def import Config, ConfigDef
from kclient.common.errors import ConfigError

_DEFINITION = ConfigDef(
    "the broker", Config, [key.row for key in BROKER_KEYS.values()], of_client=False
)


class BrokerConfig:
    """Configuration of one broker.

    Attributes:
        given: Explicitly set values by dotted name; all others are defaults.
        node_id: This broker's id.
        data_dir: Directory of all the broker's files.
        listeners: Listeners, with their advertised addresses.
    """

    def __init__(self, given: Mapping[str, object]) -> None:
        """Validate every setting.

        Args:
            given: Settings by Kafka's dotted name, or with underscores.

        Raises:
            ConfigError: A setting is unknown, missing or has an invalid value.
        """
        parsed = _DEFINITION.values(given)
        self._values = {
            name: parsed.get(key.row.keyword, key.row.default) for name, key in BROKER_KEYS.items()
        }
        self.given = {name.replace("_", "."): self[name.replace("_", ".")] for name in given}
        self.node_id = self._node_id()
        self.data_dir = self._data_dir()
        self._check_roles()
        self.listeners = parse_listeners(self._values)

    def __getitem__(self, name: str) -> Any:
        """Return a setting by its dotted name."""
        return self._values[name]

    def _node_id(self) -> int:
        old, new = self.given.get("broker.id"), self.given.get("node.id")
        if old is not None and new is not None and old != new:
            raise ConfigError(f"node.id: got {new} and broker.id {old}; set one of them")
        return int(self["node.id"] if old is None else old)

    def _data_dir(self) -> Path:
        directories: list[str] = list(self["log.dirs"] or ())
        if not directories and self["log.dir"]:
            directories = [self["log.dir"]]
        if len(directories) != 1:
            raise ConfigError(
                f"log.dirs: got {directories!r:.80}, expected one directory; set log.dir"
            )
        return Path(directories[0])

    def _check_roles(self) -> None:
        if set(self["process.roles"]) != {"broker", "controller"}:
            raise ConfigError(
                f"process.roles: got {','.join(self['process.roles'])!r:.80}, "
                "expected 'broker,controller'; one process is both"
            )
