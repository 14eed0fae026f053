"""Requests between nodes: connecting, failures, timeouts, changes of address."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kclient.broker.network.inter_broker_sender import InterBrokerSender, SenderSettings
from kclient.broker.network.peer_listener import PeerListener
from kclient.client.client_request import SimpleBuilder
from kclient.common.broker_errors import UnsupportedVersionError
from kclient.common.errors import ConfigError, DisconnectedError, KafkaError
from kclient.common.log_context import NO_LOG_CONTEXT
from kclient.common.secret import Secret
from kclient.common.types import Node
from kclient.network.security_config import SecurityConfig
from kclient.network.system_runtime import system_runtime
from kclient.protocol.message import Response
from kclient.protocol.messages.fetch import FetchRequest
from kclient.protocol.messages.metadata import (
    DescribeClusterRequest,
    DescribeClusterResponse,
    MetadataRequest,
    MetadataResponse,
)
from kclient.protocol.messages.raft_voters import UpdateRaftVoterRequest
from kclient.testing import EmbeddedCluster
from kclient.testing.certificate_authority import CertificateAuthority
from tests.support.checks.waiting import wait_until

Outcome = Response | KafkaError
RUNTIME = system_runtime()


def node(cluster: EmbeddedCluster, node_id: int = 1) -> Node:
    host, port = cluster.bootstrap_servers.rsplit(":", 1)
    return Node(node_id, host, int(port))


@contextmanager
def sender_to(security: SecurityConfig) -> Iterator[InterBrokerSender]:
    """Create a sender whose listener is named CONTROLLER."""
    settings = SenderSettings("test", request_timeout_ms=5000)
    listener = PeerListener("CONTROLLER", security, RUNTIME)
    sender = InterBrokerSender(RUNTIME, settings, listener, NO_LOG_CONTEXT)
    yield sender
    sender.close()


@pytest.fixture
def sender() -> Iterator[InterBrokerSender]:
    with sender_to(SecurityConfig()) as found:
        yield found


def step_until(sender: InterBrokerSender, condition: Callable[[], bool]) -> None:
    deadline_ms = RUNTIME.clock.monotonic_ms() + 10_000
    while not condition():
        now_ms = RUNTIME.clock.monotonic_ms()
        assert now_ms < deadline_ms
        sender.step(now_ms, 100.0)


def test_requests_wait_for_connection_and_complete_in_order(sender: InterBrokerSender) -> None:
    outcomes: list[Outcome] = []
    with EmbeddedCluster() as cluster:
        for request in (MetadataRequest(topics=[]), DescribeClusterRequest()):
            sender.send(node(cluster), SimpleBuilder(request), outcomes.append)
        step_until(sender, lambda: len(outcomes) == 2)
    assert [type(each) for each in outcomes] == [MetadataResponse, DescribeClusterResponse]


def test_request_to_closed_port_fails_with_cause(sender: InterBrokerSender) -> None:
    with EmbeddedCluster() as cluster:
        closed = node(cluster)
    outcomes: list[Outcome] = []
    sender.send(closed, SimpleBuilder(DescribeClusterRequest()), outcomes.append)
    step_until(sender, lambda: bool(outcomes))
    assert isinstance(outcomes[0], DisconnectedError)
    assert str(closed.port) in str(outcomes[0])


def test_request_without_response_fails_after_timeout(sender: InterBrokerSender) -> None:
    outcomes: list[Outcome] = []
    listener = RUNTIME.net.listen(("127.0.0.1", 0), 1)
    host, port = listener.local_address()
    try:
        sender.send(
            Node(7, host, port), SimpleBuilder(DescribeClusterRequest()), outcomes.append, 50.0
        )
        started_ms = RUNTIME.clock.monotonic_ms()
        step_until(sender, lambda: bool(outcomes))
    finally:
        listener.close()
    assert isinstance(outcomes[0], DisconnectedError)
    assert 45.0 <= RUNTIME.clock.monotonic_ms() - started_ms < 5000.0


@pytest.mark.parametrize("timeout_ms", [0.0, None])
def test_owner_runs_at_once_after_a_request_that_was_not_sent(
    sender: InterBrokerSender, monkeypatch: pytest.MonkeyPatch, timeout_ms: float | None
) -> None:
    """Its work may be due earlier than it was before the failure."""
    with EmbeddedCluster() as cluster:
        closed = node(cluster)
    outcomes: list[Outcome] = []
    waits: list[tuple[bool, float]] = []
    poll = sender._client.poll

    def observed(wait_ms: float, now_ms: float) -> object:
        waits.append((bool(outcomes), wait_ms))
        return poll(min(wait_ms, 10.0), now_ms)

    monkeypatch.setattr(sender._client, "poll", observed)
    sender.send(closed, SimpleBuilder(DescribeClusterRequest()), outcomes.append, timeout_ms)
    step_until(sender, lambda: bool(outcomes))
    failed, wait_ms = waits[-1]
    assert failed
    assert wait_ms == 0


def test_api_that_node_does_not_serve_fails_alone(sender: InterBrokerSender) -> None:
    outcomes: list[Outcome] = []
    with EmbeddedCluster() as cluster:
        for request in (UpdateRaftVoterRequest(), DescribeClusterRequest()):
            sender.send(node(cluster), SimpleBuilder(request), outcomes.append)
        step_until(sender, lambda: len(outcomes) == 2)
    assert isinstance(outcomes[0], UnsupportedVersionError)
    assert isinstance(outcomes[1], DescribeClusterResponse)


def test_new_address_of_node_is_used(sender: InterBrokerSender) -> None:
    outcomes: list[Outcome] = []
    with EmbeddedCluster() as one, EmbeddedCluster() as other:
        for cluster in (one, other):
            sender.send(node(cluster), SimpleBuilder(DescribeClusterRequest()), outcomes.append)
            step_until(sender, lambda: bool(outcomes))
            response = outcomes.pop()
            assert isinstance(response, DescribeClusterResponse)
            assert [each.port for each in response.brokers] == [node(cluster).port]


def test_lost_connection_fails_request_in_flight(sender: InterBrokerSender) -> None:
    outcomes: list[Outcome] = []
    with EmbeddedCluster() as cluster:
        target = node(cluster)
        sender.send(target, SimpleBuilder(DescribeClusterRequest()), outcomes.append)
        step_until(sender, lambda: len(outcomes) == 1)
        fetch = FetchRequest(max_wait_ms=60_000, min_bytes=1)
        sender.send(target, SimpleBuilder(fetch), outcomes.append)
        sender.step(RUNTIME.clock.monotonic_ms(), 0.0)
        sender.disconnect(target.id)
        step_until(sender, lambda: len(outcomes) == 2)
    assert isinstance(outcomes[1], DisconnectedError)


def refused(
    security: SecurityConfig, cluster: EmbeddedCluster, caplog: pytest.LogCaptureFixture
) -> list[str]:
    """Send two requests that fail; return the warnings about the listener."""
    caplog.clear()
    with sender_to(security) as sender:
        outcomes: list[Outcome] = []
        for _ in range(2):
            expected = len(outcomes) + 1
            sender.send(node(cluster), SimpleBuilder(DescribeClusterRequest()), outcomes.append)
            step_until(sender, lambda: len(outcomes) == expected)  # noqa: B023 (called at once)
        assert [type(each) for each in outcomes] == [DisconnectedError, DisconnectedError]
    return [
        each.getMessage()
        for each in caplog.records
        if each.name == PeerListener.__module__ and each.levelname == "WARNING"
    ]


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_wrong_password_of_node_is_one_warning(
    mechanism: str, caplog: pytest.LogCaptureFixture
) -> None:
    security = SecurityConfig(
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism=mechanism,
        sasl_username="node",
        sasl_password=Secret("canary"),
    )
    with EmbeddedCluster(security="sasl_plaintext", users={"node": "right"}) as cluster:
        (warning,) = refused(security, cluster, caplog)
        target = node(cluster)
    assert warning.startswith(
        f"connection to node 1 at {target.host}:{target.port} not authenticated; listener"
        f" CONTROLLER, SASL_PLAINTEXT, {mechanism} as user 'node': "
    )
    assert "Authentication failed" in warning
    assert "canary" not in caplog.text


def test_certificate_that_is_not_trusted_is_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    other = CertificateAuthority("other")
    security = SecurityConfig(security_protocol="SSL", ssl_truststore_certificates=other.pem)
    with EmbeddedCluster(security="ssl") as cluster:
        (warning,) = refused(security, cluster, caplog)
    assert "not authenticated; listener CONTROLLER, SSL: TLS handshake: the certificate" in warning


def test_host_name_that_is_not_in_the_certificate_is_refused(
    caplog: pytest.LogCaptureFixture,
) -> None:
    authority = CertificateAuthority("nodes")
    identity = authority.issue("node", ["broker2"])
    stores = {"ssl.keystore.key": identity.key, "ssl.keystore.certificate.chain": identity.chain}
    security = SecurityConfig(security_protocol="SSL", ssl_truststore_certificates=authority.pem)
    with EmbeddedCluster(security="ssl", config=stores) as cluster:
        (warning,) = refused(security, cluster, caplog)
        assert "the certificate is not valid for '127.0.0.1'; its names are DNS:broker2" in warning
        any_name = security.with_values(ssl_endpoint_identification_algorithm="")
        with sender_to(any_name) as sender:
            outcomes: list[Outcome] = []
            sender.send(node(cluster), SimpleBuilder(DescribeClusterRequest()), outcomes.append)
            step_until(sender, lambda: bool(outcomes))
    assert isinstance(outcomes[0], DescribeClusterResponse)


def test_changed_trust_store_is_used_for_new_connections(tmp_path: Path) -> None:
    authority, other = CertificateAuthority("nodes"), CertificateAuthority("other")
    identity = authority.issue("node", ["127.0.0.1"])
    stores = {"ssl.keystore.key": identity.key, "ssl.keystore.certificate.chain": identity.chain}
    trusted, replacement = tmp_path / "trusted.pem", tmp_path / "new.pem"
    trusted.write_text(other.pem)
    replacement.write_text(authority.pem)
    security = SecurityConfig(security_protocol="SSL", ssl_truststore_location=str(trusted))
    with EmbeddedCluster(security="ssl", config=stores) as cluster, sender_to(security) as sender:
        outcomes: list[Outcome] = []

        def send() -> None:
            sender.send(node(cluster), SimpleBuilder(DescribeClusterRequest()), outcomes.append)

        send()
        step_until(sender, lambda: len(outcomes) == 1)
        assert isinstance(outcomes[0], DisconnectedError)
        replacement.replace(trusted)

        def responded() -> bool:
            if isinstance(outcomes[-1], KafkaError):
                outcomes.clear()
                send()
                step_until(sender, lambda: bool(outcomes))
            return isinstance(outcomes[-1], DescribeClusterResponse)

        wait_until(responded, "the other node is trusted")


def test_stores_that_cannot_be_loaded_are_refused_at_start() -> None:
    security = SecurityConfig(security_protocol="SSL", ssl_truststore_location="none.pem")
    with pytest.raises(ConfigError, match=r"the listener CONTROLLER: ssl_trust.*none\.pem"):
        PeerListener("CONTROLLER", security, RUNTIME)
