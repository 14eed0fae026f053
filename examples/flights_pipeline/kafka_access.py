"""Connections of the steps of the pipeline to Kafka."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import token_urlsafe
from tempfile import TemporaryDirectory
from typing import Final

from kclient.testing import EmbeddedCluster

_USER: Final = "flights"
_SECRETS: Final = ("sasl.password", "ssl.keystore.key")
_FILE: Final = ".file"


@dataclass(frozen=True, slots=True)
class KafkaAccess:
    """Options of all clients, without secrets.

    Attributes:
        options: Options by dotted name. In place of a secret is a file with it, as in
            ``sasl.password.file``.
    """

    options: Mapping[str, str]

    @property
    def bootstrap(self) -> str:
        """Kafka's address."""
        return self.options["bootstrap.servers"]

    def client_options(self, **others: object) -> dict[str, object]:
        """Return the options of a client in this process, with the secrets.

        Args:
            **others: More options, by keyword.
        """
        found: dict[str, object] = {}
        for name, value in self.options.items():
            if name.endswith(_FILE):
                found[name.removesuffix(_FILE)] = Path(value).read_text()
            else:
                found[name] = value
        return {**found, **{name.replace("_", "."): value for name, value in others.items()}}

    def spark_options(self) -> dict[str, str]:
        """Return the options of a source or sink; Spark's workers read the files with secrets."""
        return {f"kafka.{name}": value for name, value in self.options.items()}

    def arguments(self) -> list[str]:
        """Return arguments for `parse_access`, for another process."""
        return [f"--kafka={name}={value}" for name, value in self.options.items()]


def parse_access(pairs: list[str]) -> KafkaAccess:
    """Return the access of pairs ``KEY=VALUE``."""
    parts = (pair.partition("=") for pair in pairs)
    return KafkaAccess({name: value for name, _, value in parts})


@contextmanager
def companion_broker(security: str) -> Iterator[KafkaAccess]:
    """Start a broker, which stops at the end of the block.

    Args:
        security: Security protocol of its listener. Certificates and a user are made for it, and
            their secrets are in files until the end of the block.
    """
    user = None if security.lower() == "plaintext" else _USER
    users = {} if user is None else {user: token_urlsafe()}
    with (
        TemporaryDirectory(prefix="kclient-secrets-") as directory,
        EmbeddedCluster(security=security, users=users) as cluster,
    ):
        yield KafkaAccess(dict(_options(cluster, Path(directory), user)))


def _options(
    cluster: EmbeddedCluster, directory: Path, user: str | None
) -> Iterator[tuple[str, str]]:
    for keyword, value in cluster.client_config(user).items():
        name = keyword.replace("_", ".")
        if name in _SECRETS:
            file = directory / name
            file.write_text(str(value))
            yield name + _FILE, str(file)
        else:
            yield name, str(value)
