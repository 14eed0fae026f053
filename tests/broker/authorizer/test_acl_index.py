"""Decisions of ACLs."""

from collections.abc import Iterable
from typing import Any

import pytest

from kclient.broker.authorizer.acl_index import AclIndex, Subject, normalized_host
from kclient.broker.metadata.metadata_image import StandardAcl
from kclient.common.acls import AclOperation, AclPermissionType, PatternType, ResourceType

ALICE = Subject("User:alice", "10.0.0.1")
READ, WRITE, DESCRIBE = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE


def acl(operation: AclOperation = READ, **changes: Any) -> StandardAcl:
    values: dict[str, Any] = {
        "resource_type": ResourceType.TOPIC,
        "resource_name": "orders",
        "pattern_type": PatternType.LITERAL,
        "principal": "User:alice",
        "host": "*",
        "operation": operation,
        "permission_type": AclPermissionType.ALLOW,
    }
    return StandardAcl(**{**values, **changes})


def prefixed(name: str, operation: AclOperation = READ, **changes: Any) -> StandardAcl:
    return acl(operation, resource_name=name, pattern_type=PatternType.PREFIXED, **changes)


def denied(found: StandardAcl) -> StandardAcl:
    return found._replace(permission_type=AclPermissionType.DENY)


def allows(
    acls: Iterable[StandardAcl],
    operation: AclOperation = READ,
    name: str = "orders",
    *,
    default_allow: bool = False,
    subject: Subject = ALICE,
) -> bool:
    index = AclIndex(acls, default_allow=default_allow)
    return index.decide(subject, operation, ResourceType.TOPIC, name).is_allowed


@pytest.mark.parametrize(
    ("acls", "operation", "allowed"),
    [
        ([acl()], READ, True),
        ([acl()], WRITE, False),
        ([acl(AclOperation.ALL)], WRITE, True),
        ([acl(principal="User:*")], READ, True),
        ([acl(principal="User:bob")], READ, False),
        ([acl(host="10.0.0.1")], READ, True),
        ([acl(host="10.0.0.2")], READ, False),
        ([acl(host="10.0.0.0/8")], READ, False),
        ([acl(resource_name="*")], READ, True),
        ([acl(resource_name="order")], READ, False),
        ([acl(resource_type=ResourceType.GROUP)], READ, False),
        ([prefixed("o")], READ, True),
        ([prefixed("orders")], READ, True),
        ([prefixed("orders-")], READ, False),
        ([prefixed("*")], READ, False),
        ([acl(), denied(acl())], READ, False),
        ([acl(), denied(prefixed("ord"))], READ, False),
        ([acl(), denied(acl(AclOperation.ALL, resource_name="*"))], READ, False),
        ([acl(), denied(acl(principal="User:bob"))], READ, True),
    ],
)
def test_deny_precedes_allow_and_patterns_match(
    acls: list[StandardAcl], operation: AclOperation, allowed: bool
) -> None:
    assert allows(acls, operation) == allowed


@pytest.mark.parametrize(
    ("operation", "implied"),
    [
        (READ, DESCRIBE),
        (WRITE, DESCRIBE),
        (AclOperation.DELETE, DESCRIBE),
        (AclOperation.ALTER, DESCRIBE),
        (AclOperation.ALTER_CONFIGS, AclOperation.DESCRIBE_CONFIGS),
    ],
)
def test_allow_implies_operations_and_deny_does_not(
    operation: AclOperation, implied: AclOperation
) -> None:
    assert allows([acl(operation)], implied)
    assert not allows([acl(implied)], operation)
    assert allows([acl(implied), denied(acl(operation))], implied)
    assert allows([acl(operation), denied(acl(implied))], operation)


def test_default_concerns_resources_without_any_acl() -> None:
    others = [acl(principal="User:bob")]
    assert allows([], default_allow=True)
    assert not allows([])
    assert not allows(others, default_allow=True)
    assert allows(others, name="payments", default_allow=True)


def test_rule_names_the_deciding_acl() -> None:
    index = AclIndex([acl(), denied(prefixed("pay"))], default_allow=False)
    found = [
        index.decide(ALICE, READ, ResourceType.TOPIC, name).rule
        for name in ("orders", "payments", "other")
    ]
    assert found == [
        "MatchingAcl(ALLOW 'User:alice' READ on TOPIC:LITERAL:'orders' from '*')",
        "MatchingAcl(DENY 'User:alice' READ on TOPIC:PREFIXED:'pay' from '*')",
        "DefaultDeny",
    ]


def test_cache_is_bounded() -> None:
    index = AclIndex([acl()], default_allow=False)
    for number in range(20_001):
        index.decide(ALICE, READ, ResourceType.TOPIC, str(number))
    assert len(index._cache) <= 10_000
    assert index.decide(ALICE, READ, ResourceType.TOPIC, "orders").is_allowed


@pytest.mark.parametrize(
    ("acls", "default_allow", "allowed"),
    [
        ([], False, False),
        ([], True, True),
        ([acl(WRITE)], False, True),
        ([acl(AclOperation.ALL)], False, True),
        ([acl()], False, False),
        ([prefixed("ord", WRITE)], False, True),
        ([acl(WRITE, resource_name="*")], False, True),
        ([acl(WRITE), denied(acl(WRITE, resource_name="*"))], False, False),
        ([acl(WRITE), denied(acl(WRITE))], False, False),
        ([acl(WRITE), denied(prefixed("ord", WRITE))], False, False),
        ([prefixed("orders", WRITE), denied(prefixed("ord", WRITE))], False, False),
        ([prefixed("ord", WRITE), denied(prefixed("orders", WRITE))], False, True),
        ([prefixed("orders", WRITE), denied(acl(WRITE))], False, True),
        ([acl(WRITE, principal="User:bob")], False, False),
    ],
)
def test_any_resource_is_allowed_unless_a_deny_covers_it(
    acls: list[StandardAcl], default_allow: bool, allowed: bool
) -> None:
    index = AclIndex(acls, default_allow=default_allow)
    assert index.allows_any(ALICE, WRITE, ResourceType.TOPIC) == allowed


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("2001:DB8:0:0:0:0:0:1", "2001:db8::1"),
        ("host.example", "host.example"),
        ("*", "*"),
    ],
)
def test_addresses_have_one_form(given: str, expected: str) -> None:
    assert normalized_host(given) == expected
