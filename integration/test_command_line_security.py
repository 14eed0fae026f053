"""The command line with configuration files of Java clients, against Apache Kafka."""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from integration.harness.discovery import NEWEST
from integration.harness.kafka_cluster import ClusterOptions, KafkaCluster, Listener
from integration.harness.kafka_runtime import KafkaRuntime
from tests.support.certificates import CertificateAuthority
from tests.support.processes.child_process import ChildProcess

PASSWORD = "canary pass;word='="  # noqa: S105 (of this test)
_QUOTED = PASSWORD.replace("'", "\\'")
_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
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


class Secured(NamedTuple):
    """Apache Kafka with a listener of SASL_SSL.

    Attributes:
        servers: Address of the listener.
        truststore: File with the certificate of the authority.
    """

    servers: str
    truststore: Path

    def file(self, directory: Path, password: str) -> Path:
        """Write a configuration file; `password` is its text in the file."""
        path = directory / "client.properties"
        path.touch(0o600)
        path.write_text(
            _CLIENT_FILE.format(
                servers=self.servers, module=_MODULE, password=password, truststore=self.truststore
            )
        )
        return path


@pytest.fixture(scope="module")
def secured(
    runtimes: Callable[[str], KafkaRuntime], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Secured]:
    directory = tmp_path_factory.mktemp("command-line-")
    authority = CertificateAuthority("authority of the test")
    (directory / "server.pem").write_text(authority.issue("broker", ("localhost", "127.0.0.1")).pem)
    (directory / "ca.pem").write_text(authority.pem)
    properties = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(directory / "server.pem"),
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "scram-sha-512.sasl.jaas.config": f"{_MODULE} required;",
    }
    options = ClusterOptions(
        listeners=(Listener("BOTH", "SASL_SSL", properties=properties),),
        format_options=["--add-scram", f'SCRAM-SHA-512=[name=alice,password="{PASSWORD}"]'],
    )
    with KafkaCluster(runtimes(NEWEST), directory, options) as cluster:
        yield Secured(cluster.bootstrap("BOTH"), directory / "ca.pem")


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


def test_commands_use_the_file_of_a_java_client(secured: Secured, tmp_path: Path) -> None:
    in_file = _QUOTED.replace("\\", "\\\\")
    file = ("--config-file", str(secured.file(tmp_path, in_file)))
    assert run(tmp_path, "topics", "create", "orders", *file)[0] == 0
    assert run(tmp_path, "topics", "list", *file) == (0, "orders\n")
    assert run(tmp_path, "produce", "orders", *file, lines="a\nb\n") == (0, "")
    limits = ("--from-beginning", "--max-records", "2")
    assert run(tmp_path, "consume", "orders", *limits, *file) == (0, "a\nb\n")
    traced = run(tmp_path, "trace", "--topic", "orders", "--records", "60", *file)
    assert traced[0] == 0


def test_secret_of_the_environment_in_the_default_file(secured: Secured, tmp_path: Path) -> None:
    variables = {
        "KCLIENT_CONFIG_FILE": str(secured.file(tmp_path, "${env:KCLIENT_TEST_PASSWORD}")),
        "KCLIENT_TEST_PASSWORD": _QUOTED,
    }
    status, output = run(tmp_path, "groups", "list", **variables)
    assert (status, "canary" in output) == (0, False)


@pytest.mark.parametrize(
    "command", [("topics", "list"), ("produce", "orders"), ("consume", "orders")], ids=" ".join
)
def test_wrong_password_is_one_line(
    secured: Secured, tmp_path: Path, command: tuple[str, ...]
) -> None:
    file = secured.file(tmp_path, "canary-wrong")
    (tmp_path / "input").write_text("a\n")
    with ChildProcess(
        [sys.executable, "-m", "kclient", *command, "--config-file", str(file)],
        tmp_path,
        stdin=tmp_path / "input",
    ) as process:
        assert process.wait() == 1
        (error,) = [line for line in process.stderr.splitlines() if "record" not in line]
        assert error.startswith(f"kclient {command[0]}: ")
        assert "the broker refused user 'alice' by SCRAM-SHA-512" in error
        assert "canary" not in process.stdout + process.stderr
