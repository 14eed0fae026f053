"""Admin calls for delegation tokens."""

import base64
from collections.abc import Iterable, Sequence

from kclient.admin.requester import Requester, raise_error
from kclient.admin.security_arguments import (
    check_hmac,
    check_period,
    check_principal,
    check_principals,
)
from kclient.admin.token_types import DelegationToken, TokenInformation
from kclient.client.client_request import SimpleBuilder
from kclient.common.secret import Secret
from kclient.common.waiting import Steps
from kclient.protocol.messages.delegation_tokens import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    DescribedDelegationToken,
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)

_OTHER_OWNER = 3


def create_delegation_token(
    requester: Requester,
    *,
    owner: str | None = None,
    renewers: str | Iterable[str] = (),
    max_lifetime_ms: int = -1,
    timeout: float | None = None,
) -> Steps[DelegationToken]:
    """Create a delegation token; the client must have authenticated by SASL or TLS (KIP-48).

    A broker accepts the token once it has applied the metadata record, shortly after this call.

    Args:
        owner: Principal that the token authenticates, such as ``"User:alice"``; None for the
            principal of this client. It needs Kafka 3.3 (KIP-373).
        renewers: Principals that may renew the token, in addition to its owner.
        max_lifetime_ms: Longest life of the token in ms, renewals included; -1 for the broker's
            ``delegation.token.max.lifetime.ms``.
        timeout: Timeout in seconds.

    Raises:
        DelegationTokenDisabledError: The brokers have no ``delegation.token.secret.key``.
        UnsupportedByAuthenticationError: The connection is not authenticated, or is
            authenticated by a delegation token.
        DelegationTokenAuthorizationError: The client may not CREATE_TOKENS for the owner.
    """
    owning = ("", "") if owner is None else check_principal("owner", owner)
    renewing = check_principals("renewers", renewers)
    lifetime_ms = check_period("max_lifetime_ms", max_lifetime_ms)
    requester.limit(timeout)
    request = CreateDelegationTokenRequest(
        owner_principal_type=owning[0],
        owner_principal_name=owning[1],
        renewers=[
            CreatableRenewers(principal_type=kind, principal_name=name) for kind, name in renewing
        ],
        max_lifetime_ms=lifetime_ms,
    )

    def read(response: CreateDelegationTokenResponse) -> DelegationToken:
        raise_error(response.error_code)
        owned_by = f"{response.principal_type}:{response.principal_name}"
        information = TokenInformation(
            token_id=response.token_id,
            owner=owned_by,
            token_requester=_principal(
                response.token_requester_principal_type, response.token_requester_principal_name
            )
            or owned_by,
            renewers=tuple(f"{kind}:{name}" for kind, name in renewing),
            issue_timestamp=response.issue_timestamp_ms,
            expiry_timestamp=response.expiry_timestamp_ms,
            max_timestamp=response.max_timestamp_ms,
        )
        return DelegationToken(information, _secret(response.hmac))

    builder = SimpleBuilder(request, oldest=1 if owner is None else _OTHER_OWNER)
    return requester.send_to_least_loaded(builder, CreateDelegationTokenResponse, read)


def renew_delegation_token(
    requester: Requester,
    hmac: Secret | str,
    *,
    renew_time_period_ms: int = -1,
    timeout: float | None = None,
) -> Steps[int]:
    """Extend the life of a token (KIP-48).

    Args:
        hmac: Secret of the token, as `DelegationToken` has it, or its text in base64.
        renew_time_period_ms: Life of the token from now on in ms, limited by its max_timestamp; -1
            for the broker's ``delegation.token.expiry.time.ms``.
        timeout: Timeout in seconds.

    Returns:
        The new time of expiry in ms since 1970.

    Raises:
        DelegationTokenNotFoundError: There is no such token.
        DelegationTokenOwnerMismatchError: The client is neither its owner nor a renewer.
        DelegationTokenExpiredError: It has expired.
    """
    secret = check_hmac(hmac)
    period_ms = check_period("renew_time_period_ms", renew_time_period_ms)
    requester.limit(timeout)
    request = RenewDelegationTokenRequest(hmac=secret, renew_period_ms=period_ms)
    return _change_expiry(requester, request, RenewDelegationTokenResponse)


def expire_delegation_token(
    requester: Requester,
    hmac: Secret | str,
    *,
    expiry_time_period_ms: int = -1,
    timeout: float | None = None,
) -> Steps[int]:
    """End the life of a token at once, or after a period (KIP-48).

    Args:
        hmac: Secret of the token, as `DelegationToken` has it, or its text in base64.
        expiry_time_period_ms: Life of the token from now on in ms; -1 removes it at once.
        timeout: Timeout in seconds.

    Returns:
        The new time of expiry in ms since 1970.

    Raises:
        DelegationTokenNotFoundError: There is no such token.
        DelegationTokenOwnerMismatchError: The client is neither its owner nor a renewer.
        DelegationTokenExpiredError: It has expired.
    """
    secret = check_hmac(hmac)
    period_ms = check_period("expiry_time_period_ms", expiry_time_period_ms)
    requester.limit(timeout)
    request = ExpireDelegationTokenRequest(hmac=secret, expiry_time_period_ms=period_ms)
    return _change_expiry(requester, request, ExpireDelegationTokenResponse)


def _change_expiry(
    requester: Requester,
    request: RenewDelegationTokenRequest | ExpireDelegationTokenRequest,
    kind: type[RenewDelegationTokenResponse] | type[ExpireDelegationTokenResponse],
) -> Steps[int]:
    """Send a request that changes the time of expiry of a token; return the new one."""

    def read(response: RenewDelegationTokenResponse | ExpireDelegationTokenResponse) -> int:
        raise_error(response.error_code)
        return response.expiry_timestamp_ms

    return requester.send_to_least_loaded(SimpleBuilder(request), kind, read)


def describe_delegation_token(
    requester: Requester,
    owners: str | Iterable[str] | None = None,
    *,
    timeout: float | None = None,
) -> Steps[tuple[DelegationToken, ...]]:
    """Return tokens with their secrets (KIP-48).

    Args:
        owners: Principals, such as ``"User:alice"``, that own the tokens or may renew them; None
            for every token that the client may describe: its own, those it may renew, and those
            that rules allow.
        timeout: Timeout in seconds.

    Raises:
        DelegationTokenDisabledError: The brokers have no ``delegation.token.secret.key``.
        UnsupportedByAuthenticationError: The connection is not authenticated, or is
            authenticated by a delegation token.
    """
    wanted = None if owners is None else check_principals("owners", owners)
    requester.limit(timeout)
    request = DescribeDelegationTokenRequest(owners=_owners(wanted))

    def read(response: DescribeDelegationTokenResponse) -> tuple[DelegationToken, ...]:
        raise_error(response.error_code)
        return tuple(map(_described, response.tokens))

    builder = SimpleBuilder(request)
    return requester.send_to_least_loaded(builder, DescribeDelegationTokenResponse, read)


def _owners(
    wanted: Sequence[tuple[str, str]] | None,
) -> list[DescribeDelegationTokenOwner] | None:
    if wanted is None:
        return None
    return [
        DescribeDelegationTokenOwner(principal_type=kind, principal_name=name)
        for kind, name in wanted
    ]


def _described(token: DescribedDelegationToken) -> DelegationToken:
    owner = f"{token.principal_type}:{token.principal_name}"
    information = TokenInformation(
        token_id=token.token_id,
        owner=owner,
        token_requester=_principal(
            token.token_requester_principal_type, token.token_requester_principal_name
        )
        or owner,
        renewers=tuple(f"{each.principal_type}:{each.principal_name}" for each in token.renewers),
        issue_timestamp=token.issue_timestamp,
        expiry_timestamp=token.expiry_timestamp,
        max_timestamp=token.max_timestamp,
    )
    return DelegationToken(information, _secret(token.hmac))


def _principal(kind: str, name: str) -> str:
    """Return a principal as text; empty if the broker is too old to send it."""
    return f"{kind}:{name}" if name else ""


def _secret(hmac: bytes) -> Secret:
    return Secret(base64.b64encode(hmac).decode())
