"""Delegation tokens (KIP-48).

- CreateDelegationToken (38): creates a token, from version 3 on for another owner (KIP-373).
- RenewDelegationToken (39): extends the life of a token.
- ExpireDelegationToken (40): ends the life of a token, or shortens it.
- DescribeDelegationToken (41): the tokens of owners.
"""

from kclient.protocol.api_keys import ApiKey
from kclient.protocol.fields import Struct, array, binary, int16, int32, int64, string
from kclient.protocol.message import Request, Response


class CreateDelegationTokenResponse(Response, versions="1-3", flexible="2+"):
    """The token, or an error."""

    error_code: int = int16()
    principal_type: str = string()
    principal_name: str = string()
    token_requester_principal_type: str = string("3+")
    token_requester_principal_name: str = string("3+")
    issue_timestamp_ms: int = int64()
    expiry_timestamp_ms: int = int64()
    max_timestamp_ms: int = int64()
    token_id: str = string()
    hmac: bytes = binary(secret=True)
    throttle_time_ms: int = int32()


class CreatableRenewers(Struct):
    """Principal that may renew the token."""

    principal_type: str = string()
    principal_name: str = string()


class CreateDelegationTokenRequest(
    Request,
    api_key=ApiKey.CREATE_DELEGATION_TOKEN,
    response=CreateDelegationTokenResponse,
    versions="1-3",
    flexible="2+",
):
    """Creates a token; without an owner, for the principal of the connection."""

    owner_principal_type: str | None = string("3+", nullable="3+")
    owner_principal_name: str | None = string("3+", nullable="3+")
    renewers: list[CreatableRenewers] = array(CreatableRenewers)
    max_lifetime_ms: int = int64()


class RenewDelegationTokenResponse(Response, versions="1-2", flexible="2+"):
    """The new time of expiry."""

    error_code: int = int16()
    expiry_timestamp_ms: int = int64()
    throttle_time_ms: int = int32()


class RenewDelegationTokenRequest(
    Request,
    api_key=ApiKey.RENEW_DELEGATION_TOKEN,
    response=RenewDelegationTokenResponse,
    versions="1-2",
    flexible="2+",
):
    """Extends the life of a token."""

    hmac: bytes = binary(secret=True)
    renew_period_ms: int = int64()


class ExpireDelegationTokenResponse(Response, versions="1-2", flexible="2+"):
    """The new time of expiry."""

    error_code: int = int16()
    expiry_timestamp_ms: int = int64()
    throttle_time_ms: int = int32()


class ExpireDelegationTokenRequest(
    Request,
    api_key=ApiKey.EXPIRE_DELEGATION_TOKEN,
    response=ExpireDelegationTokenResponse,
    versions="1-2",
    flexible="2+",
):
    """Ends the life of a token after a period, a negative one at once."""

    hmac: bytes = binary(secret=True)
    expiry_time_period_ms: int = int64()


class DescribedDelegationTokenRenewer(Struct):
    """Principal that may renew the token."""

    principal_type: str = string()
    principal_name: str = string()


class DescribedDelegationToken(Struct):
    """A token."""

    principal_type: str = string()
    principal_name: str = string()
    token_requester_principal_type: str = string("3+")
    token_requester_principal_name: str = string("3+")
    issue_timestamp: int = int64()
    expiry_timestamp: int = int64()
    max_timestamp: int = int64()
    token_id: str = string()
    hmac: bytes = binary(secret=True)
    renewers: list[DescribedDelegationTokenRenewer] = array(DescribedDelegationTokenRenewer)


class DescribeDelegationTokenResponse(Response, versions="1-3", flexible="2+"):
    """Tokens that the principal may describe."""

    error_code: int = int16()
    tokens: list[DescribedDelegationToken] = array(DescribedDelegationToken)
    throttle_time_ms: int = int32()


class DescribeDelegationTokenOwner(Struct):
    """Owner of tokens."""

    principal_type: str = string()
    principal_name: str = string()


class DescribeDelegationTokenRequest(
    Request,
    api_key=ApiKey.DESCRIBE_DELEGATION_TOKEN,
    response=DescribeDelegationTokenResponse,
    versions="1-3",
    flexible="2+",
):
    """Request for the tokens of owners; null for all owners."""

    owners: list[DescribeDelegationTokenOwner] | None = array(
        DescribeDelegationTokenOwner, nullable="0+"
    )
