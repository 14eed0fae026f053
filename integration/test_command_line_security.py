"""The command line with configuration files of Java clients, against Apache Kafka."""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from integration.harness.discovery import NEWEST
from integration.harness.kafka_runtime import KafkaRuntime
from integration.harness.secured_kafka import PASSWORD, SCRAM_MODULE, SecuredKafka, secured_kafka
from tests.support.processes.child_process import ChildProcess

_QUOTED = PASSWORD.replace("'", "\\'")
_CLIENT_FILE = """
# of a Java client
bootstrap.servers={servers}
security.protocol=SASL_SSL
sasl.mechanism=SCRAM-SHA-512
sasl.jaas.config={module} required \\
    username="alice" \\
    password='{password}';
ssl.truststore.type=PEM
ssl.truststore.location={truststore}
linger.ms=1
max.poll.records=100
"""


@pytest.fixture(scope="module")
def secured(
    runtimes: Callable[[str], KafkaRuntime], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SecuredKafka]:
    with secured_kafka(runtimes(NEWEST), tmp_path_factory.mktemp("command-line-")) as kafka:
        yield kafka


def client_file(secured: SecuredKafka, directory: Path, password: str) -> Path:
    """Write a configuration file; `password` is its text in the file."""
    path = directory / "client.properties"
    path.touch(0o600)
    path.write_text(
        _CLIENT_FILE.format(
            servers=secured.servers,
            module=SCRAM_MODULE,
            password=password,
            truststore=secured.truststore,
        )
    )
    return path


def run(directory: Path, *arguments: str, lines: str = "", **variables: str) -> tuple[int, str]:
    """Run a command; return its exit status and its output, which has no secret."""
    (directory / "input").write_text(lines)
    with ChildProcess(
        [sys.executable, "-m", "kclient", "--log-level", "DEBUG", *arguments],
        directory,
        stdin=directory / "input",
        environment={**os.environ, **variables},
    ) as process:
        status = process.wait()
        assert "canary" not in process.stdout + process.stderr
        return status, process.stdout


def test_commands_use_the_file_of_a_java_client(secured: SecuredKafka, tmp_path: Path) -> None:
    in_file = _QUOTED.replace("\\", "\\\\")
    file = ("--config-file", str(client_file(secured, tmp_path, in_file)))
    assert run(tmp_path, "topics", "create", "orders", *file)[0] == 0
    assert run(tmp_path, "topics", "list", *file) == (0, "orders\n")
    assert run(tmp_path, "produce", "orders", *file, lines="a\nb\n") == (0, "")
    limits = ("--from-beginning", "--max-records", "2")
    assert run(tmp_path, "consume", "orders", *limits, *file) == (0, "a\nb\n")
    traced = run(tmp_path, "trace", "--topic", "orders", "--records", "60", *file)
    assert traced[0] == 0


def test_secret_of_the_environment_in_the_default_file(
    secured: SecuredKafka, tmp_path: Path
) -> None:
    variables = {
        "KCLIENT_CONFIG": str(client_file(secured, tmp_path, "${env:KCLIENT_TEST_PASSWORD}")),
        "KCLIENT_TEST_PASSWORD": _QUOTED,
    }
    status, output = run(tmp_path, "groups", "list", **variables)
    assert (status, "canary" in output) == (0, False)


@pytest.mark.parametrize(
    "command", [("topics", "list"), ("produce", "orders"), ("consume", "orders")], ids=" ".join
)
def test_wrong_password_is_one_line(
    secured: SecuredKafka, tmp_path: Path, command: tuple[str, ...]
) -> None:
    file = client_file(secured, tmp_path, "canary-wrong")
    (tmp_path / "input").write_text("a\n")
    with ChildProcess(
        [sys.executable, "-m", "kclient", *command, "--config-file", str(file)],
        tmp_path,
        stdin=tmp_path / "input",
    ) as process:
        assert process.wait() == 1
        (error,) = [
            line
            for line in process.stderr.splitlines()
            if "sent 0" not in line and "record" not in line
        ]
        assert error.startswith(f"kclient {command[0]}: ")
        assert "the broker refused user 'alice' by SCRAM-SHA-512" in error
        assert "canary" not in process.stdout + process.stderr


def test_doctor_shows_each_step_of_a_secured_connection(
    secured: SecuredKafka, tmp_path: Path
) -> None:
    in_file = _QUOTED.replace("\\", "\\\\")
    file = ("--config-file", str(client_file(secured, tmp_path, in_file)))
    status, shown = run(tmp_path, "doctor", "--probe", *file)
    assert status == 0, shown
    found = [tuple(line.split()[:2]) for line in shown.splitlines() if line[0] != " "]
    assert found[:7] == [
        ("ok", "DNS"),
        ("ok", "TCP"),
        ("ok", "TLS"),
        ("ok", "SASL"),
        ("ok", "ApiVersions"),
        ("ok", "metadata"),
        ("ok", "advertised"),
    ]
    assert found[7:] == [("ok", "produce"), ("ok", "clock"), ("ok", "consume")]


def test_doctor_names_the_step_that_fails(secured: SecuredKafka, tmp_path: Path) -> None:
    wrong = ("--config-file", str(client_file(secured, tmp_path, "wrong-canary")))
    status, shown = run(tmp_path, "doctor", *wrong)
    assert status == 1
    assert "FAIL  SASL" in shown
    status, shown = run(tmp_path, "doctor", "-b", secured.servers, "--timeout", "3")
    assert status == 1
    assert "FAIL  ApiVersions" in shown
    assert "compare security.protocol" in shown
