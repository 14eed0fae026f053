"""Configuration files of the client commands."""

from pathlib import Path

import pytest

from kclient.admin.admin_core import ADMIN_CONFIG
from kclient.cli.config_file import load_config_file
from kclient.cli.main import main
from kclient.common.errors import ConfigError
from kclient.consumer.consumer_config import CONSUMER_CONFIG

MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "client.properties"
    path.touch(0o600)
    return path


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("\nclient.idd=x", ":2: unknown option 'client.idd' for Consumer; did you mean"),
        ("log.dirs=x", ":1: unknown option 'log.dirs' for Consumer; it is an option of the broker"),
        (
            "metadata.broker.list=h:1",
            ":1: unknown option 'metadata.broker.list' for Consumer; here",
        ),
        ("\n\nmax.poll.records=x", ":3: max.poll.records: got 'x'"),
        ("sasl.kerberos.kinit.cmd=canary", ":1: sasl.kerberos.kinit.cmd: got a secret val"),
        (
            f"sasl.jaas.config={MODULE} required password=canary;",
            ":1: sasl.jaas.config: got a secret",
        ),
        ("sasl.password=\\ucanary", ":1: got an invalid escape sequence, expected "),
        ("max_poll_records=1\nmax.poll.records=1", ":2: got max.poll.records twice, expected it"),
    ],
)
def test_errors_have_file_and_line(file: Path, text: str, problem: str) -> None:
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_config_file(file).options_for(CONSUMER_CONFIG)
    assert str(caught.value).startswith(f"{file}{problem}")
    assert "canary" not in str(caught.value)


def test_keys_of_other_clients_are_ignored(file: Path) -> None:
    file.write_text("linger.ms=1\nacks=all\nmax.poll.records=2\nclient.id=a\ntransactional.id=t\n")
    loaded = load_config_file(file)
    assert loaded.options_for(ADMIN_CONFIG) == {"client.id": "a"}
    assert loaded.options_for(CONSUMER_CONFIG) == {"client.id": "a", "max.poll.records": "2"}


def test_values_end_as_in_java(file: Path) -> None:
    file.write_bytes(b"sasl.password = a b\xa0 \t\nclient.id=\\u0020x\\u0020\n")
    options = load_config_file(file).options_for(ADMIN_CONFIG)
    assert options == {"sasl.password": "a b\xa0", "client.id": "x"}


def test_size_of_the_file_is_bounded(file: Path) -> None:
    file.write_bytes(b"#" * (1024 * 1024 + 1))
    with pytest.raises(ConfigError, match="more than 1048576 bytes, expected a properties file"):
        load_config_file(file)


@pytest.mark.parametrize(
    ("text", "mode", "warned"),
    [
        ("sasl.password=canary", 0o644, "sasl.password"),
        (f"sasl.jaas.config={MODULE} required;", 0o604, "sasl.jaas.config"),
        ("sasl.password=a\nssl.key.password=b", 0o644, "sasl.password, ssl.key.password"),
        ("sasl.password=canary", 0o600, ""),
        ("sasl.password=canary", 0o640, ""),
        ("client.id=a", 0o644, ""),
    ],
)
def test_secrets_that_all_users_can_read_are_warned_of(
    file: Path, capsys: pytest.CaptureFixture[str], text: str, mode: int, warned: str
) -> None:
    file.write_text(text)
    file.chmod(mode)
    load_config_file(file)
    expected = f"{file}: all users can read {warned}; restrict the file with chmod 600\n"
    assert capsys.readouterr().err == (expected if warned else "")


COMMANDS = [
    ("topics", "list"),
    ("groups", "list"),
    ("groups", "describe", "g"),
    ("produce", "t"),
    ("consume", "t"),
    ("trace",),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_each_client_command_reads_the_file_once(
    file: Path, capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    file.write_text("bootstrap.servers=no port\nsasl.password=canary\n")
    file.chmod(0o644)
    assert main([*command, "--config-file", str(file)]) == 2
    warning, *others = capsys.readouterr().err.splitlines()
    assert warning.endswith("chmod 600")
    (error,) = [each for each in others if "records" not in each]
    assert f"kclient {command[0]}: {file}:1: bootstrap_servers[0]: got 'no port', exp" in error


def test_missing_file_is_named(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topics", "list", "--config-file", f"{file}x"]) == 1
    error = capsys.readouterr().err
    assert error == f"kclient topics: [Errno 2] No such file or directory: '{file}x'\n"
