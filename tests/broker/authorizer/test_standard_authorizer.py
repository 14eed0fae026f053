"""Authorizer with the ACLs of the metadata."""

import logging

import pytest

from kclient.broker.authorizer.standard_authorizer import (
    StandardAuthorizer,
    parse_super_users,
)
from kclient.broker.metadata.metadata_image import StandardAcl
from kclient.common.acls import AclOperation, ResourceType
from kclient.common.errors import ConfigError
from kclient.network.authenticator import KafkaPrincipal
from tests.broker.authorizer.test_acl_index import acl, denied

ALICE, ROOT = KafkaPrincipal("User", "alice"), KafkaPrincipal("User", "root")


def ask(authorizer: StandardAuthorizer, principal: KafkaPrincipal, name: str = "orders") -> bool:
    return authorizer.authorize(principal, "10.0.0.1", AclOperation.READ, ResourceType.TOPIC, name)


def test_super_user_is_allowed_what_acls_deny() -> None:
    acls = {b"1": denied(acl(principal="User:*"))}
    authorizer = StandardAuthorizer(lambda: acls, frozenset({"User:root"}), default_allow=False)
    assert ask(authorizer, ROOT)
    assert not ask(authorizer, ALICE)
    operation, kind = AclOperation.WRITE, ResourceType.TOPIC
    assert authorizer.authorize_by_resource_type(ROOT, "::1", operation, kind)
    assert not authorizer.authorize_by_resource_type(ALICE, "::1", operation, kind)


def test_changed_acls_are_in_force_at_once() -> None:
    present: dict[bytes, StandardAcl] = {}
    current = [present]
    authorizer = StandardAuthorizer(lambda: current[0], frozenset(), default_allow=False)
    assert not ask(authorizer, ALICE)
    current[0] = {b"1": acl()}
    assert ask(authorizer, ALICE)
    current[0] = {}
    assert not ask(authorizer, ALICE)


def test_denials_are_logged_with_the_rule(caplog: pytest.LogCaptureFixture) -> None:
    authorizer = StandardAuthorizer(dict, frozenset(), default_allow=False)
    with caplog.at_level(logging.INFO, "kclient.broker.authorizer"):
        ask(authorizer, ALICE, "a\nb")
        authorizer.authorize(
            ALICE, "::1", AclOperation.READ, ResourceType.TOPIC, "quiet", is_logged=False
        )
    assert caplog.messages == [
        (
            "Principal = 'User:alice' is Denied operation = READ from host = 10.0.0.1 on resource"
            " = TOPIC:LITERAL:'a\\nb' (DefaultDeny)"
        )
    ]


@pytest.mark.parametrize("given", ["alice", "User:", ":alice", "User:a;b"])
def test_malformed_super_users_are_refused(given: str) -> None:
    with pytest.raises(ConfigError, match=r"super\.users: got"):
        parse_super_users(given)


def test_super_users_are_separated_by_semicolons() -> None:
    assert parse_super_users("User:a; User:CN=b,O=c;") == {"User:a", "User:CN=b,O=c"}
