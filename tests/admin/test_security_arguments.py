"""Checks of the arguments of `SecurityMethods`."""

from typing import Any

import pytest

from kclient.admin import (
    ScramCredentialInfo,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from kclient.admin.admin_client import AdminClient
from kclient.common.errors import InvalidArgumentError, InvalidTypeError

INFO = ScramCredentialInfo("SCRAM-SHA-256")
CANARY = "canary-password"


def altered(user: Any, info: Any, password: Any = CANARY, salt: Any = None) -> Any:
    upsertion = UserScramCredentialUpsertion(user, info, password, salt)
    return lambda admin: admin.alter_user_scram_credentials(upsertion)


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda a: a.describe_user_scram_credentials([]), InvalidArgumentError, "users: got []"),
        (lambda a: a.describe_user_scram_credentials([1]), InvalidTypeError, "users: got 1"),
        (lambda a: a.describe_user_scram_credentials(""), InvalidArgumentError, "users: got ''"),
        (lambda a: a.alter_user_scram_credentials([]), InvalidArgumentError, "alterations"),
        (lambda a: a.alter_user_scram_credentials(["x"]), InvalidTypeError, "alterations: got 'x'"),
        (altered("", INFO), InvalidArgumentError, "user: got ''"),
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
    ],
)
def test_wrong_use_fails_before_any_io(call: Any, kind: type[Exception], message: str) -> None:
    with AdminClient(bootstrap_servers="127.0.0.1:1") as admin, pytest.raises(kind) as caught:
        call(admin)
    assert message in str(caught.value)
    assert CANARY not in str(caught.value)
