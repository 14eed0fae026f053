"""Security of the demonstration: certificates, a user, and the options of broker and clients."""

import secrets
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple

from kclient.broker.metadata.scram_parser import parse_scram_credentials
from kclient.broker.metadata.storage_formatter import FormatOptions, format_storage
from kclient.common.uuids import random_uuid, uuid_to_text
from kclient.network.endpoint import SecurityProtocol
from kclient.network.system_runtime import system_runtime

_USER: Final = "flights"
_MECHANISM: Final = "SCRAM-SHA-512"
_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"


class DemoSecurity(NamedTuple):
    """Options that secure the connections of the demonstration.

    Attributes:
        broker: Options of ``kclient broker``.
        clients: Options of the clients by dotted name.
    """

    broker: list[str]
    clients: dict[str, str]


def prepare_security(protocol: SecurityProtocol, directory: Path) -> DemoSecurity:
    """Make certificates and the user, and return the options of broker and clients.

    The files are in `directory`, and are readable by their owner alone. No secret is an option of
    the broker, which other users of the machine can see: its password is in the metadata.

    Args:
        protocol: Security protocol of the listener.
        directory: Directory of the demonstration, in which ``data`` is that of the broker.

    Raises:
        ConfigError: A package is missing, or ``data`` is that of an earlier run.
    """
    name = protocol.name
    settings: dict[str, str] = {}
    clients = {"security.protocol": name}
    if protocol.uses_ssl:
        _make_certificates(directory)
        settings["ssl.keystore.location"] = str(directory / "broker.pem")
        clients["ssl.truststore.location"] = str(directory / "ca.pem")
    if protocol is SecurityProtocol.SSL:
        settings["ssl.truststore.location"] = str(directory / "ca.pem")
        settings["ssl.client.auth"] = "required"
        clients["ssl.keystore.location"] = str(directory / "client.pem")
    if protocol.uses_sasl:
        settings["sasl.enabled.mechanisms"] = _MECHANISM
        jaas = f"listener.name.{name.lower()}.{_MECHANISM.lower()}.sasl.jaas.config"
        settings[jaas] = f"{_MODULE} required;"
        clients["sasl.mechanism"] = _MECHANISM
        clients["sasl.username"] = _USER
        clients["sasl.password"] = _add_user(directory / "data")
    options = ["--listen", f"{name}://127.0.0.1:0"]
    for key, value in settings.items():
        options += ["--config", f"{key}={value}"]
    return DemoSecurity(options, clients)


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read."""
    path.unlink(missing_ok=True)
    path.touch(mode=0o600)
    path.write_text(text)


def _make_certificates(directory: Path) -> None:
    kit: Any = import_module("kclient.testing.cluster_security")  # with the first need of it
    authority = kit.new_authority("kclient demo")
    (directory / "ca.pem").write_text(authority.pem)
    write_private(directory / "broker.pem", authority.issue("broker", kit.LOCAL_HOSTS).pem)
    write_private(directory / "client.pem", authority.issue(_USER).pem)


def _add_user(data: Path) -> str:
    """Format the directory of the broker with the user, and return its password."""
    password = secrets.token_urlsafe()
    runtime = system_runtime()
    options = FormatOptions(
        cluster_id=uuid_to_text(random_uuid(runtime.random)),
        node_id=1,
        directories=(data,),
        credentials=parse_scram_credentials([f"{_MECHANISM}=[name={_USER},password={password}]"]),
    )
    format_storage(runtime, options)
    return password
