"""Admin calls for SCRAM credentials."""

import hashlib
import pickle

import pytest

from kclient.admin import scram_calls
from kclient.admin.scram_types import (
    ScramCredentialInfo,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from kclient.common.broker_errors import (
    ClusterAuthorizationError,
    ResourceNotFoundError,
    UnacceptableCredentialError,
)
from kclient.common.secret import Secret
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.message import Request, Response
from kclient.protocol.messages import user_scram_credentials as messages
from tests.support.clients.scripted_broker import ScriptedBroker
from tests.support.virtual.admin_world import AdminWorld

SHA_256, SHA_512 = "SCRAM-SHA-256", "SCRAM-SHA-512"
ALICE = UserScramCredentialUpsertion("alice", ScramCredentialInfo(SHA_256, 8192), "canary-a")
BOB = UserScramCredentialDeletion("bob", SHA_512)


def described(
    user: str, *infos: tuple[int, int], code: int = 0
) -> messages.DescribeUserScramCredentialsResult:
    return messages.DescribeUserScramCredentialsResult(
        user=user,
        error_code=code,
        credential_infos=[
            messages.CredentialInfo(mechanism=mechanism, iterations=count)
            for mechanism, count in infos
        ],
    )


def test_credentials_are_described_by_user() -> None:
    found = [described("alice", (2, 4096), (1, 8192)), described("bob", (7, 1))]
    world = AdminWorld(2)
    world.respond(
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        lambda *_: messages.DescribeUserScramCredentialsResponse(results=found),
        high=0,
    )
    assert world.run(scram_calls.describe_user_scram_credentials) == {
        "alice": (ScramCredentialInfo(SHA_256, 8192), ScramCredentialInfo(SHA_512, 4096)),
        "bob": (ScramCredentialInfo("UNKNOWN", 1),),
    }


def test_described_users_are_named_in_request_and_error() -> None:
    def missing(_: ScriptedBroker, request: Request) -> Response:
        assert isinstance(request, messages.DescribeUserScramCredentialsRequest)
        names = [user.name for user in request.users or ()]
        results = [described(name, code=91) for name in names]
        return messages.DescribeUserScramCredentialsResponse(results=results)

    world = AdminWorld()
    world.respond(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, missing, high=0)
    with pytest.raises(ResourceNotFoundError, match="user 'a'") as caught:
        world.run(scram_calls.describe_user_scram_credentials, ["a", "b"]).raise_for_errors()
    assert "user 'b'" in caught.value.__notes__[0]


def test_error_of_the_whole_description() -> None:
    world = AdminWorld()
    world.respond(
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        lambda *_: messages.DescribeUserScramCredentialsResponse(error_code=31),
        high=0,
    )
    with pytest.raises(ClusterAuthorizationError):
        world.run(scram_calls.describe_user_scram_credentials)


def test_client_computes_the_salted_password_for_the_controller() -> None:
    seen = []

    def altered(_: ScriptedBroker, request: Request) -> Response:
        assert isinstance(request, messages.AlterUserScramCredentialsRequest)
        seen.append(request)
        # After a move of the controller the request is sent again.
        code = 41 if len(seen) == 1 else 0
        names = ["alice", "bob"]
        return messages.AlterUserScramCredentialsResponse(
            results=[
                messages.AlterUserScramCredentialsResult(user=name, error_code=code)
                for name in names
            ]
        )

    world = AdminWorld(2)
    world.respond(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, altered, high=0)
    world.run(scram_calls.alter_user_scram_credentials, [ALICE, BOB])
    assert len(seen) == 2
    (upsertion,) = seen[0].upsertions
    assert (upsertion.name, upsertion.mechanism, upsertion.iterations) == ("alice", 1, 8192)
    assert len(upsertion.salt) >= 16
    assert upsertion.salted_password == hashlib.pbkdf2_hmac(
        "sha256", b"canary-a", upsertion.salt, 8192
    )
    (deletion,) = seen[0].deletions
    assert (deletion.name, deletion.mechanism) == ("bob", 2)
    assert len(world.requests(messages.AlterUserScramCredentialsRequest, 1)) == 2


def test_given_salt_is_used_and_errors_name_each_user() -> None:
    def refused(_: ScriptedBroker, request: Request) -> Response:
        assert isinstance(request, messages.AlterUserScramCredentialsRequest)
        assert request.upsertions[0].salt == b"salt of the user"
        return messages.AlterUserScramCredentialsResponse(
            results=[
                messages.AlterUserScramCredentialsResult(user="alice", error_code=93),
                messages.AlterUserScramCredentialsResult(
                    user="bob", error_code=91, error_message="no such credential"
                ),
            ]
        )

    world = AdminWorld()
    world.respond(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, refused, high=0)
    alice = UserScramCredentialUpsertion(
        "alice", ScramCredentialInfo(SHA_512), Secret("canary"), b"salt of the user"
    )
    with pytest.raises(UnacceptableCredentialError, match="user 'alice'") as caught:
        world.run(scram_calls.alter_user_scram_credentials, [alice, BOB]).raise_for_errors()
    assert "user 'bob': RESOURCE_NOT_FOUND: no such credential" in caught.value.__notes__[0]


def test_password_is_in_no_text_and_no_pickle() -> None:
    assert "canary" not in f"{ALICE!r} {ALICE}"
    assert "8192" in repr(ALICE)
    with pytest.raises(TypeError):
        pickle.dumps(ALICE)
