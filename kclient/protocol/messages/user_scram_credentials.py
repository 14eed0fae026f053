"""SCRAM credentials: DescribeUserScramCredentials (50), AlterUserScramCredentials (51) (KIP-554).

A mechanism is 1 for SCRAM-SHA-256 and 2 for SCRAM-SHA-512.
"""

from kclient.protocol.api_keys import ApiKey
from kclient.protocol.fields import Struct, array, binary, int8, int16, int32, string
from kclient.protocol.message import Request, Response


class CredentialInfo(Struct):
    """Credential of a user for one mechanism, without salt and keys."""

    mechanism: int = int8()
    iterations: int = int32()


class DescribeUserScramCredentialsResult(Struct):
    """Credentials of a user, or the error for the user."""

    user: str = string()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    credential_infos: list[CredentialInfo] = array(CredentialInfo)


class DescribeUserScramCredentialsResponse(Response, versions="0", flexible="0+"):
    """Credentials of each user."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    results: list[DescribeUserScramCredentialsResult] = array(DescribeUserScramCredentialsResult)


class UserName(Struct):
    """User to describe."""

    name: str = string()


class DescribeUserScramCredentialsRequest(
    Request,
    api_key=ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
    response=DescribeUserScramCredentialsResponse,
    versions="0",
    flexible="0+",
):
    """Users to describe; null or none for all of them."""

    users: list[UserName] | None = array(UserName, nullable="0+")


class AlterUserScramCredentialsResult(Struct):
    """Outcome for a user."""

    user: str = string()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


class AlterUserScramCredentialsResponse(Response, versions="0", flexible="0+"):
    """Outcome for each user."""

    throttle_time_ms: int = int32()
    results: list[AlterUserScramCredentialsResult] = array(AlterUserScramCredentialsResult)


class ScramCredentialDeletion(Struct):
    """Credential to remove."""

    name: str = string()
    mechanism: int = int8()


class ScramCredentialUpsertion(Struct):
    """Credential to set: the client computes the salted password."""

    name: str = string()
    mechanism: int = int8()
    iterations: int = int32()
    salt: bytes = binary(secret=True)
    salted_password: bytes = binary(secret=True)


class AlterUserScramCredentialsRequest(
    Request,
    api_key=ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
    response=AlterUserScramCredentialsResponse,
    versions="0",
    flexible="0+",
):
    """Credentials to remove and to set."""

    deletions: list[ScramCredentialDeletion] = array(ScramCredentialDeletion)
    upsertions: list[ScramCredentialUpsertion] = array(ScramCredentialUpsertion)
