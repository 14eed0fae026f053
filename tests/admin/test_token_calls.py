"""Admin calls for delegation tokens: arguments, versions, and secrets that nothing shows."""

import base64
import pickle
from typing import Any

import pytest

from kclient.admin import token_calls
from kclient.admin.token_types import DelegationToken, TokenInformation
from kclient.common.broker_errors import (
    DelegationTokenDisabledError,
    DelegationTokenNotFoundError,
    UnsupportedVersionError,
)
from kclient.common.errors import InvalidArgumentError, InvalidTypeError
from kclient.common.secret import Secret
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.message import Request, Response
from kclient.protocol.messages import delegation_tokens as messages
from tests.support.clients.scripted_broker import ScriptedBroker
from tests.support.virtual.admin_world import AdminWorld

HMAC = b"canary of the token"
TEXT = base64.b64encode(HMAC).decode()


def created(_: ScriptedBroker, request: Request) -> Response:
    assert isinstance(request, messages.CreateDelegationTokenRequest)
    owner = request.owner_principal_name
    return messages.CreateDelegationTokenResponse(
        principal_type="User",
        principal_name=owner or "alice",
        token_requester_principal_type="User" if owner else "",
        token_requester_principal_name="alice" if owner else "",
        issue_timestamp_ms=1,
        expiry_timestamp_ms=2,
        max_timestamp_ms=3,
        token_id="id",
        hmac=HMAC,
    )


def test_token_is_created_for_another_owner() -> None:
    world = AdminWorld()
    world.respond(ApiKey.CREATE_DELEGATION_TOKEN, created, low=1, high=3)
    token = world.run(
        token_calls.create_delegation_token,
        owner="User:bob",
        renewers=["User:carol", "User:a:b"],
        max_lifetime_ms=5000,
    )
    assert token.token_info == TokenInformation(
        "id", "User:bob", "User:alice", ("User:carol", "User:a:b"), 1, 2, 3
    )
    assert token.hmac.reveal() == TEXT
    (request,) = world.requests(messages.CreateDelegationTokenRequest)
    assert isinstance(request, messages.CreateDelegationTokenRequest)
    assert (request.owner_principal_type, request.owner_principal_name) == ("User", "bob")
    assert [each.principal_name for each in request.renewers] == ["carol", "a:b"]
    assert request.max_lifetime_ms == 5000


def test_old_broker_creates_tokens_for_the_client_itself() -> None:
    world = AdminWorld()
    world.respond(ApiKey.CREATE_DELEGATION_TOKEN, created, low=1, high=2)
    info = world.run(token_calls.create_delegation_token).token_info
    assert (info.owner, info.token_requester) == ("User:alice", "User:alice")
    with pytest.raises(UnsupportedVersionError):
        world.run(token_calls.create_delegation_token, owner="User:bob")


def test_secret_is_in_no_text_and_no_pickle() -> None:
    token = DelegationToken(TokenInformation("id", "User:a", "User:a", (), 1, 2, 3), Secret(TEXT))
    response = messages.CreateDelegationTokenResponse(hmac=HMAC)
    described = messages.DescribedDelegationToken(hmac=HMAC)
    renewal = messages.RenewDelegationTokenRequest(hmac=HMAC)
    expiry = messages.ExpireDelegationTokenRequest(hmac=HMAC)
    shown = f"{token!r} {response!r} {described!r} {renewal!r} {expiry!r}"
    assert "canary" not in shown
    assert TEXT not in shown
    assert "User:a" in shown
    with pytest.raises(TypeError):
        pickle.dumps(token)


@pytest.mark.parametrize("hmac", [Secret(TEXT), TEXT])
def test_life_of_a_token_is_changed_by_its_secret(hmac: Secret | str) -> None:
    world = AdminWorld()
    renewed = messages.RenewDelegationTokenResponse(expiry_timestamp_ms=7)
    expired = messages.ExpireDelegationTokenResponse(expiry_timestamp_ms=8)
    world.respond(ApiKey.RENEW_DELEGATION_TOKEN, lambda *_: renewed, low=1, high=2)
    world.respond(ApiKey.EXPIRE_DELEGATION_TOKEN, lambda *_: expired, low=1, high=2)
    assert world.run(token_calls.renew_delegation_token, hmac, renew_time_period_ms=5) == 7
    assert world.run(token_calls.expire_delegation_token, hmac) == 8
    (renewal,) = world.requests(messages.RenewDelegationTokenRequest)
    (expiry,) = world.requests(messages.ExpireDelegationTokenRequest)
    assert isinstance(renewal, messages.RenewDelegationTokenRequest)
    assert isinstance(expiry, messages.ExpireDelegationTokenRequest)
    assert (renewal.hmac, renewal.renew_period_ms) == (HMAC, 5)
    assert (expiry.hmac, expiry.expiry_time_period_ms) == (HMAC, -1)


def test_token_that_does_not_exist_is_an_error() -> None:
    world = AdminWorld()
    renewed = messages.RenewDelegationTokenResponse(error_code=62)
    expired = messages.ExpireDelegationTokenResponse(error_code=62)
    world.respond(ApiKey.RENEW_DELEGATION_TOKEN, lambda *_: renewed, low=1, high=2)
    world.respond(ApiKey.EXPIRE_DELEGATION_TOKEN, lambda *_: expired, low=1, high=2)
    for call in (token_calls.renew_delegation_token, token_calls.expire_delegation_token):
        with pytest.raises(DelegationTokenNotFoundError):
            world.run(call, TEXT)


@pytest.mark.parametrize("version", [2, 3])
def test_tokens_of_owners_are_described(version: int) -> None:
    token = messages.DescribedDelegationToken(
        principal_type="User",
        principal_name="bob",
        token_requester_principal_type="User" if version == 3 else "",
        token_requester_principal_name="alice" if version == 3 else "",
        issue_timestamp=1,
        expiry_timestamp=2,
        max_timestamp=3,
        token_id="id",
        hmac=HMAC,
        renewers=[
            messages.DescribedDelegationTokenRenewer(principal_type="User", principal_name="carol")
        ],
    )
    world = AdminWorld()
    response = messages.DescribeDelegationTokenResponse(tokens=[token])
    world.respond(ApiKey.DESCRIBE_DELEGATION_TOKEN, lambda *_: response, low=1, high=version)
    (found,) = world.run(token_calls.describe_delegation_token, "User:bob")
    requester = "User:alice" if version == 3 else "User:bob"  # which an old broker does not send
    assert found.token_info == TokenInformation(
        "id", "User:bob", requester, ("User:carol",), 1, 2, 3
    )
    assert found.hmac == Secret(TEXT)
    world.run(token_calls.describe_delegation_token)
    named, every = world.requests(messages.DescribeDelegationTokenRequest)
    assert isinstance(named, messages.DescribeDelegationTokenRequest)
    assert isinstance(every, messages.DescribeDelegationTokenRequest)
    assert named.owners is not None
    assert [(each.principal_type, each.principal_name) for each in named.owners] == [
        ("User", "bob")
    ]
    assert every.owners is None


def test_brokers_without_secret_key_have_no_tokens() -> None:
    world = AdminWorld()
    created = messages.CreateDelegationTokenResponse(error_code=61)
    described = messages.DescribeDelegationTokenResponse(error_code=61)
    world.respond(ApiKey.CREATE_DELEGATION_TOKEN, lambda *_: created, low=1, high=3)
    world.respond(ApiKey.DESCRIBE_DELEGATION_TOKEN, lambda *_: described, low=1, high=3)
    for call in (token_calls.create_delegation_token, token_calls.describe_delegation_token):
        with pytest.raises(DelegationTokenDisabledError):
            world.run(call)


@pytest.mark.parametrize("given", ["canary é", "can", "", b"canary", None])
def test_wrong_secret_is_refused_and_not_shown(given: Any) -> None:
    with pytest.raises((InvalidArgumentError, InvalidTypeError), match=r"^hmac: got ") as caught:
        AdminWorld().run(token_calls.renew_delegation_token, given)
    assert "can" not in str(caught.value).replace("cannot", "")


@pytest.mark.parametrize(
    "options",
    [
        {"owner": "bob"},
        {"owner": 1},
        {"renewers": ["bob"]},
        {"renewers": 1},
        {"max_lifetime_ms": -2},
        {"max_lifetime_ms": "1"},
    ],
)
def test_wrong_arguments_are_refused(options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises((InvalidArgumentError, InvalidTypeError), match=f"^{name}: got "):
        AdminWorld().run(token_calls.create_delegation_token, **options)
