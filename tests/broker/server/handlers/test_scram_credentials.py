"""SCRAM credentials: changed, described, and kept over a restart."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kclient import AdminClient
from kclient.admin import (
    ScramCredentialInfo,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from kclient.broker.server.auth_helper import AuthHelper
from kclient.broker.server.handlers import scram_credentials
from kclient.common.broker_errors import (
    DuplicateResourceError,
    NotControllerError,
    ResourceNotFoundError,
)
from kclient.protocol.messages.user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    ScramCredentialDeletion,
    UserName,
)
from kclient.testing import EmbeddedCluster
from tests.support.clients.wire import Wire

SHA_256, SHA_512 = "SCRAM-SHA-256", "SCRAM-SHA-512"
WEAK, STRONG = ScramCredentialInfo(SHA_256), ScramCredentialInfo(SHA_512, 8192)


def test_credentials_are_described_at_once_and_after_a_restart(tmp_path: Path) -> None:
    with (
        EmbeddedCluster(data_dir=tmp_path) as cluster,
        AdminClient(bootstrap_servers=cluster.bootstrap_servers) as admin,
    ):
        assert not admin.describe_user_scram_credentials()
        for info in (WEAK, STRONG):
            admin.alter_user_scram_credentials(
                [UserScramCredentialUpsertion(name, info, "canary") for name in ("b", "a")]
            ).raise_for_errors()
            assert info in admin.describe_user_scram_credentials("a")["a"]
        admin.alter_user_scram_credentials(UserScramCredentialDeletion("b", SHA_256))
        expected = {"a": (WEAK, STRONG), "b": (STRONG,)}
        found = admin.describe_user_scram_credentials()
        assert (dict(found), list(found)) == (expected, ["a", "b"])
    with (
        EmbeddedCluster(data_dir=tmp_path) as cluster,
        AdminClient(bootstrap_servers=cluster.bootstrap_servers) as admin,
    ):
        assert admin.describe_user_scram_credentials() == expected
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or b"canary" not in path.read_bytes()


def test_errors_name_the_user(cluster: EmbeddedCluster) -> None:
    with AdminClient(bootstrap_servers=cluster.bootstrap_servers) as admin:
        with pytest.raises(ResourceNotFoundError, match="user 'nosuch'"):
            admin.alter_user_scram_credentials(UserScramCredentialDeletion("nosuch", SHA_256))
        with pytest.raises(ResourceNotFoundError, match="user 'nosuch'"):
            admin.describe_user_scram_credentials("nosuch")
        with pytest.raises(DuplicateResourceError, match="user 'nosuch'"):
            admin.describe_user_scram_credentials(["nosuch", "nosuch"]).raise_for_errors()


@pytest.mark.parametrize("users", [None, []])
def test_no_names_mean_all_users(cluster: EmbeddedCluster, wire: Wire, users: Any) -> None:
    with AdminClient(bootstrap_servers=cluster.bootstrap_servers) as admin:
        admin.alter_user_scram_credentials(UserScramCredentialUpsertion("u", WEAK, "x"))
    request = DescribeUserScramCredentialsRequest(users=users)
    response = wire.ask(request, 0, DescribeUserScramCredentialsResponse)
    assert [each.user for each in response.results] == ["u"]
    named = DescribeUserScramCredentialsRequest(users=[UserName(name=""), UserName(name="u")])
    response = wire.ask(named, 0, DescribeUserScramCredentialsResponse)
    assert [each.error_code for each in response.results] == [91, 0]


def test_lost_controller_is_reported_for_each_user() -> None:
    body = AlterUserScramCredentialsRequest(
        deletions=[ScramCredentialDeletion(name=name, mechanism=1) for name in ("a", "b", "a")]
    )
    responses: list[Any] = []
    controller = SimpleNamespace(change=lambda _, on_done: on_done(NotControllerError("gone")))
    services: Any = SimpleNamespace(controller=controller, auth=AuthHelper(None, float))
    request: Any = SimpleNamespace(respond=responses.append)
    alter, _ = scram_credentials.APIS
    assert alter.handle(services, request, body) is None
    (response,) = responses
    assert [(each.user, each.error_code) for each in response.results] == [("a", 41), ("b", 41)]
