"""Security of the demonstration: each protocol, with its files."""

import stat
from pathlib import Path

import pytest

from kclient import AdminClient
from kclient.cli.demo.demo_security import prepare_security, write_private
from kclient.cli.processes import start_broker
from kclient.common.errors import ConfigError, KafkaError
from kclient.network.endpoint import SecurityProtocol

SECURED = ("ssl.keystore.location", "sasl.password")  # what the broker requires of clients


@pytest.mark.parametrize("protocol", SecurityProtocol)
def test_clients_connect_with_the_options_of_the_demonstration(
    protocol: SecurityProtocol, tmp_path: Path
) -> None:
    security = prepare_security(protocol, tmp_path)
    assert security.clients["security.protocol"] == protocol.name
    secrets = [security.clients[name] for name in SECURED if name in security.clients]
    assert len(secrets) == (protocol is not SecurityProtocol.PLAINTEXT)
    assert security.clients.get("sasl.password", "none") not in " ".join(security.broker)
    broker, address = start_broker(tmp_path / "data", tmp_path / "broker.log", *security.broker)
    with broker:
        options = {"bootstrap.servers": address, **security.clients}
        with AdminClient(options) as admin:
            assert admin.list_topics() == []
        for name in secrets and SECURED:
            options.pop(name, None)
        if secrets:
            with pytest.raises(KafkaError), AdminClient(options) as admin:
                admin.list_topics()


def test_files_with_secrets_are_readable_by_their_owner_alone(tmp_path: Path) -> None:
    prepare_security(SecurityProtocol.SSL, tmp_path)
    open_to_all = tmp_path / "client.properties"
    open_to_all.write_text("earlier")
    write_private(open_to_all, "sasl.password=secret\n")
    assert open_to_all.read_text() == "sasl.password=secret\n"
    for name in ("broker.pem", "client.pem", "client.properties"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600


def test_directory_of_an_earlier_run_is_refused(tmp_path: Path) -> None:
    prepare_security(SecurityProtocol.SASL_PLAINTEXT, tmp_path)
    with pytest.raises(ConfigError, match="belongs to"):
        prepare_security(SecurityProtocol.SASL_PLAINTEXT, tmp_path)
