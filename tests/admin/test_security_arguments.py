"""Checks of the arguments of `AdminClient` for users and access rules."""

from typing import Any

import pytest

from kclient.admin import (
    AccessControlEntry,
    AccessControlEntryFilter,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
    ScramCredentialInfo,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from kclient.admin.admin_client import AdminClient
from kclient.common.errors import InvalidArgumentError, InvalidTypeError

INFO = ScramCredentialInfo("SCRAM-SHA-256")
CANARY = "canary-password"
TOPIC = ResourcePattern(ResourceType.TOPIC, "t")
READ = AccessControlEntry("User:a", "*", AclOperation.READ, AclPermissionType.ALLOW)


def altered(user: Any, info: Any, password: Any = CANARY, salt: Any = None) -> Any:
    upsertion = UserScramCredentialUpsertion(user, info, password, salt)
    return lambda admin: admin.alter_user_scram_credentials(upsertion)


def created(pattern: Any, entry: Any = READ) -> Any:
    return lambda admin: admin.create_acls(AclBinding(pattern, entry))


def removed(pattern: Any, entry: Any = None) -> Any:
    wanted = AclBindingFilter(pattern, entry or AccessControlEntryFilter())
    return lambda admin: admin.delete_acls([wanted])


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda a: a.describe_user_scram_credentials([]), InvalidArgumentError, "users: got []"),
        (lambda a: a.describe_user_scram_credentials([1]), InvalidTypeError, "users: got 1"),
        (lambda a: a.describe_user_scram_credentials(""), InvalidArgumentError, "users: got ''"),
        (lambda a: a.alter_user_scram_credentials([]), InvalidArgumentError, "alterations"),
        (lambda a: a.alter_user_scram_credentials(["x"]), InvalidTypeError, "alterations: got 'x'"),
        (altered("", INFO), InvalidArgumentError, "user: got ''"),
        (altered("é", INFO), InvalidArgumentError, "user: got 'é' (str), expected an ASCII user n"),
        (altered("a\0", INFO), InvalidArgumentError, "expected an ASCII user name without NUL"),
        (
            altered("a", INFO, f"{CANARY}\0"),
            InvalidArgumentError,
            "password of user 'a': got a NUL",
        ),
        (altered("a", "SCRAM-SHA-256"), InvalidTypeError, "credential_info: got 'SCRAM-SHA-256'"),
        (
            altered("a", ScramCredentialInfo("SHA-256")),
            InvalidArgumentError,
            "mechanism: got 'SHA-256' (str), expected SCRAM-SHA-256 or SCRAM-SHA-512",
        ),
        (altered("a", ScramCredentialInfo("SCRAM-SHA-256", 4095)), InvalidArgumentError, "4095"),
        (
            altered("a", ScramCredentialInfo("SCRAM-SHA-512", 16_385)),
            InvalidArgumentError,
            "iterations of user 'a': got 16385, expected 4096 to 16384",
        ),
        (altered("a", INFO, ""), InvalidArgumentError, "password of user 'a': got ''"),
        (altered("a", INFO, CANARY.encode()), InvalidTypeError, "'a': got a bytes, expected a str"),
        (altered("a", INFO, salt="salt"), InvalidTypeError, "salt of user 'a': got 'salt'"),
        (altered("a", INFO, salt=b""), InvalidArgumentError, "salt of user 'a': got b''"),
        (
            lambda a: a.alter_user_scram_credentials(UserScramCredentialDeletion("a", "PLAIN")),
            InvalidArgumentError,
            "mechanism: got 'PLAIN'",
        ),
        (lambda a: a.create_acls([]), InvalidArgumentError, "acls: got []"),
        (lambda a: a.create_acls("x"), InvalidTypeError, "acls: got 'x'"),
        (created("t"), InvalidTypeError, "pattern of an AclBinding: got 't'"),
        (created(ResourcePattern(2, "t")), InvalidTypeError, "resource_type: got 2"),  # type: ignore[arg-type]  # refused
        (
            created(TOPIC._replace(resource_type=ResourceType.ANY)),
            InvalidArgumentError,
            "resource_type: got ANY",
        ),
        (created(TOPIC._replace(name="")), InvalidArgumentError, "name of a ResourcePattern"),
        (
            created(TOPIC._replace(pattern_type=PatternType.MATCH)),
            InvalidArgumentError,
            "pattern_type: got MATCH, expected LITERAL or PREFIXED",
        ),
        (created(TOPIC, "x"), InvalidTypeError, "entry of an AclBinding"),
        (created(TOPIC, READ._replace(principal="alice")), InvalidArgumentError, "'User:alice'"),
        (created(TOPIC, READ._replace(host="")), InvalidArgumentError, "host: got ''"),
        (
            created(TOPIC, READ._replace(operation=AclOperation.UNKNOWN)),
            InvalidArgumentError,
            "operation: got UNKNOWN",
        ),
        (
            created(TOPIC, READ._replace(permission_type=AclPermissionType.ANY)),
            InvalidArgumentError,
            "permission_type: got ANY",
        ),
        (lambda a: a.describe_acls(None), InvalidTypeError, "filter: got None"),
        (lambda a: a.delete_acls([]), InvalidArgumentError, "filters: got []"),
        (removed(TOPIC), InvalidTypeError, "pattern_filter: got"),
        (removed(ResourcePatternFilter(name="")), InvalidArgumentError, "name: got ''"),
        (
            removed(ResourcePatternFilter(ResourceType.UNKNOWN)),
            InvalidArgumentError,
            "resource_type: got UNKNOWN",
        ),
        (
            removed(ResourcePatternFilter(), AccessControlEntryFilter(principal=1)),  # type: ignore[arg-type]  # refused
            InvalidTypeError,
            "principal: got 1",
        ),
    ],
)
def test_wrong_use_fails_before_any_io(call: Any, kind: type[Exception], message: str) -> None:
    with AdminClient(bootstrap_servers="127.0.0.1:1") as admin, pytest.raises(kind) as caught:
        call(admin)
    assert message in str(caught.value)
    assert CANARY not in str(caught.value)
