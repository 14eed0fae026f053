"""Clients with SASL or TLS at a broker without them."""

from collections.abc import Iterator

import pytest

from kclient import AdminClient
from kclient.common.broker_errors import IllegalSaslStateError
from kclient.common.errors import BootstrapError
from kclient.testing import EmbeddedCluster


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster() as made:
        yield made


def test_listener_without_sasl_is_named_at_once(cluster: EmbeddedCluster) -> None:
    with (
        AdminClient(
            bootstrap_servers=cluster.bootstrap_servers,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="PLAIN",
            sasl_username="alice",
            sasl_password="canary",
        ) as admin,
        pytest.raises(IllegalSaslStateError, match="the listener takes no SASL") as caught,
    ):
        admin.list_topics()
    assert "canary" not in str(caught.value)


def test_listener_without_tls_is_named(cluster: EmbeddedCluster) -> None:
    with (
        AdminClient(
            bootstrap_servers=cluster.bootstrap_servers,
            security_protocol="SSL",
            default_api_timeout_ms=300,
        ) as admin,
        pytest.raises(BootstrapError, match="the port may be one without TLS"),
    ):
        admin.list_topics()
