"""``kclient doctor``: what each check finds, and its remedies."""

import json
import os
import socket
import ssl
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from kclient.cli.main import INTERRUPTED, main
from kclient.common.runtime import Runtime
from kclient.common.system_tasks import SystemClock
from kclient.network.system_runtime import system_runtime
from kclient.testing import EmbeddedCluster
from kclient.testing.certificate_authority import CertificateAuthority
from tests.cli.conftest import Run
from tests.support.checks.waiting import wait_until
from tests.support.processes.broker_command import free_ports
from tests.support.processes.child_process import ROOT, ChildProcess

Captured = pytest.CaptureFixture[str]


def doctor(capsys: Captured, *arguments: str) -> tuple[int, list[str]]:
    """Return the status and the lines, without times and addresses of this run."""
    status = main(["doctor", "--timeout", "3", *arguments])
    shown = capsys.readouterr()
    assert shown.err == ""
    return status, shown.out.splitlines()


def outcomes(lines: list[str]) -> list[tuple[str, str]]:
    return [(line.split()[0], line.split()[1]) for line in lines if line[0] != " "]


def test_each_step_of_a_working_connection_is_shown(run: Run) -> None:
    status, out, err = run("doctor")
    assert (status, err) == (0, "")
    assert outcomes(out.splitlines()) == [
        ("ok", "DNS"),
        ("ok", "TCP"),
        ("ok", "ApiVersions"),
        ("ok", "metadata"),
        ("ok", "advertised"),
        ("skip", "probe"),
    ]
    assert "1 brokers, controller 1" in out
    assert "→ use --probe" in out


def test_probe_produces_and_consumes_in_a_temporary_topic(run: Run) -> None:
    status, out, _ = run("doctor", "--probe", "--json")
    found = [json.loads(line) for line in out.splitlines()]
    assert status == 0
    assert [(each["status"], each["check"]) for each in found[-3:]] == [
        ("ok", "produce"),
        ("ok", "clock"),
        ("ok", "consume"),
    ]
    assert found[-3]["target"].startswith("kclient-doctor-")
    assert run("topics", "list")[1] == ""


def test_probe_of_a_topic_that_does_not_exist_creates_none(run: Run) -> None:
    status, out, _ = run("doctor", "--topic", "nowhere")
    assert status == 1
    assert "FAIL  produce        nowhere: topic 'nowhere': UNKNOWN_TOPIC_OR_PARTITION" in out
    assert run("topics", "list")[1] == ""


def test_probe_of_a_given_topic_leaves_its_record(run: Run) -> None:
    run("topics", "create", "probed")
    assert run("doctor", "--topic", "probed")[0] == 0
    consumed = run("consume", "probed", "--from-beginning", "--max-records", "1")
    assert consumed[1] == "kclient doctor\n"
    run("topics", "delete", "probed")


def test_controllers_are_refused(capsys: Captured) -> None:
    assert main(["doctor", "-X", "bootstrap.controllers=127.0.0.1:1"]) == 2
    assert "expected bootstrap.servers" in capsys.readouterr().err


def test_unknown_name_and_closed_port(closed_port: str, capsys: Captured) -> None:
    status, lines = doctor(capsys, "-b", f"no-such-host.invalid:9092,{closed_port}")
    assert status == 1
    assert outcomes(lines) == [("FAIL", "DNS"), ("ok", "DNS"), ("FAIL", "TCP")]
    assert "no-such-host.invalid:9092: " in lines[0]
    assert "Connection refused" in lines[3]
    assert sum("check the name and the port of bootstrap.servers" in line for line in lines) == 2


def test_peer_that_does_not_respond(silent_peer: str, capsys: Captured) -> None:
    status, lines = doctor(capsys, "-b", silent_peer, "--timeout", "0.3")
    assert status == 1
    assert outcomes(lines) == [("ok", "DNS"), ("ok", "TCP"), ("FAIL", "ApiVersions")]
    assert "compare security.protocol with the listener's" in lines[3]


def test_ctrl_c_ends_a_check_that_waits(silent_peer: str, tmp_path: Path) -> None:
    program = [sys.executable, "-m", "kclient", "doctor", "-b", silent_peer, "--timeout", "600"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with ChildProcess(program, tmp_path, environment=environment) as process:
        wait_until(lambda: "TCP" in process.stdout, "the port was checked")
        process.interrupt()
        process.finish(INTERRUPTED)
        assert process.stderr == "kclient: interrupted\n"


def test_tls_at_a_listener_without_it(cluster: EmbeddedCluster, capsys: Captured) -> None:
    status, lines = doctor(capsys, "-b", cluster.bootstrap_servers, "-X", "security.protocol=SSL")
    assert status == 1
    assert outcomes(lines)[-1] == ("FAIL", "TLS")
    assert "the port may be one without TLS" in lines[2]


def test_unreachable_advertised_address(capsys: Captured) -> None:
    (port,) = free_ports(1)
    listeners = {
        "listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "advertised.listeners": "PLAINTEXT://no-such-host.invalid:19092",
    }
    with EmbeddedCluster(config=listeners):
        status, lines = doctor(capsys, "-b", f"127.0.0.1:{port}")
    assert status == 1
    assert outcomes(lines)[-1] == ("FAIL", "DNS")
    assert "broker 1 advertises no-such-host.invalid:19092" in lines[-1]


@pytest.fixture(scope="module")
def secured() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(security="sasl_ssl", users={"alice": "alice-secret"}) as cluster:
        yield cluster


def properties(secured: EmbeddedCluster, directory: Path, **other: str) -> str:
    """Write a configuration file of alice."""
    options = {**secured.client_config("alice"), **other}
    lines = []
    for name, value in options.items():
        text = str(value).replace("\\", "\\\\").replace("\n", "\\n")
        lines.append(f"{name.replace('_', '.')}={text}")
    path = directory / "client.properties"
    path.write_text("\n".join(lines))
    path.chmod(0o600)
    return str(path)


def test_tls_and_sasl_that_work(secured: EmbeddedCluster, tmp_path: Path, capsys: Captured) -> None:
    status, lines = doctor(capsys, "--config-file", properties(secured, tmp_path), "--probe")
    shown = "\n".join(lines)
    assert status == 0, shown
    assert ("ok", "TLS") in outcomes(lines)
    assert ("ok", "SASL") in outcomes(lines)
    assert "TLSv1.3" in shown
    assert "authenticated by SCRAM-SHA-512" in shown
    assert "alice-secret" not in shown


def test_wrong_password(secured: EmbeddedCluster, tmp_path: Path, capsys: Captured) -> None:
    file = properties(secured, tmp_path, sasl_password="wrong-secret")
    status, lines = doctor(capsys, "--config-file", file)
    shown = "\n".join(lines)
    assert status == 1
    assert outcomes(lines)[-1] == ("FAIL", "SASL")
    assert "check sasl.mechanism and the credentials" in shown
    assert "wrong-secret" not in shown


def test_certificate_of_an_unknown_issuer(secured: EmbeddedCluster, capsys: Captured) -> None:
    status, lines = doctor(capsys, "-b", secured.bootstrap_servers, "-X", "security.protocol=SSL")
    assert status == 1
    assert outcomes(lines)[-1] == ("FAIL", "TLS")
    assert "add" in lines[2]
    assert "ssl.truststore" in lines[2]


def test_certificate_that_expires_soon(tmp_path: Path, capsys: Captured) -> None:
    authority = CertificateAuthority("issuer")
    identity = authority.issue("broker", ["127.0.0.1"], valid_days=(-1, 5))
    (tmp_path / "server.pem").write_text(identity.pem)
    (tmp_path / "ca.pem").write_text(authority.pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem")
    trust = ("-Xsecurity.protocol=SSL", f"-Xssl.truststore.location={tmp_path / 'ca.pem'}")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        peer = threading.Thread(target=close_after_handshakes, args=(listening, context))
        peer.start()
        address = f"127.0.0.1:{listening.getsockname()[1]}"
        status, lines = doctor(
            capsys, "-b", address, *trust, "-Xssl.truststore.type=PEM", "--timeout", "0.5"
        )
        listening.shutdown(socket.SHUT_RDWR)
        peer.join(10)
    assert status == 1
    assert outcomes(lines) == [
        ("ok", "DNS"),
        ("ok", "TCP"),
        ("warn", "TLS"),
        ("FAIL", "ApiVersions"),
    ]
    assert "certificate 127.0.0.1, valid until " in lines[2]
    assert "renew the certificate" in lines[3]


def close_after_handshakes(listening: socket.socket, context: ssl.SSLContext) -> None:
    """Accept connections until the socket is shut down, and close each after its handshake."""
    while True:
        try:
            stream, _ = listening.accept()
        except OSError:
            return
        with stream:
            try:
                context.wrap_socket(stream, server_side=True).close()
            except OSError:
                continue  # the check of the port closes its connection without a handshake


class _Ahead(SystemClock):
    def wall_ms(self) -> int:
        return super().wall_ms() + 90_000


def test_skew_of_the_clocks(capsys: Captured) -> None:
    runtime: Runtime = system_runtime()._replace(clock=_Ahead())
    with EmbeddedCluster(runtime=runtime) as cluster:
        status, lines = doctor(capsys, "-b", cluster.bootstrap_servers, "--probe")
    assert status == 0
    (clock,) = [line for line in lines if " clock " in line]
    assert clock.startswith("warn")
    assert "the broker's clock is 90.0 s ahead of this machine's" in clock
    assert any("synchronize the clocks" in line for line in lines)
