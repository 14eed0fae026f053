"""Admin calls for SCRAM credentials of users."""

from collections.abc import Iterable

from kclient.admin.requester import Requester, item_error, raise_error, raise_failures, raising
from kclient.admin.scram_types import (
    ScramCredentialInfo,
    UserScramCredentialAlteration,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from kclient.admin.security_arguments import check_alterations, check_users
from kclient.client.client_request import SimpleBuilder
from kclient.common.broker_errors import NotControllerError
from kclient.common.errors import KafkaError
from kclient.common.waiting import Steps
from kclient.network.sasl.scram import (
    SCRAM_MECHANISMS,
    SCRAM_MECHANISMS_BY_CODE,
    random_salt,
    salted_password,
)
from kclient.protocol.messages.user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
    UserName,
)

_UNKNOWN = "UNKNOWN"


def describe_user_scram_credentials(
    requester: Requester, users: str | Iterable[str] | None = None, *, timeout: float | None = None
) -> Steps[dict[str, tuple[ScramCredentialInfo, ...]]]:
    """Return the SCRAM credentials of users, sorted and without secrets (KIP-554).

    Args:
        users: Names of users; None for all users that have credentials.
        timeout: Timeout in seconds.

    Raises:
        ResourceNotFoundError: A user has no credentials.
        DuplicateResourceError: A user is given twice.
        ClusterAuthorizationError: The client may not DESCRIBE the cluster.
    """
    wanted = check_users(users)
    requester.limit(timeout)
    names = None if wanted is None else [UserName(name=user) for user in wanted]

    def read(
        response: DescribeUserScramCredentialsResponse,
    ) -> dict[str, tuple[ScramCredentialInfo, ...]]:
        raise_error(response.error_code, response.error_message)
        described, failures = {}, {}
        for result in response.results:
            error = item_error(f"user {result.user!r}", result.error_code, result.error_message)
            if error is not None:
                failures[result.user] = error
            described[result.user] = tuple(sorted(map(_info, result.credential_infos)))
        raise_failures(failures)
        return described

    builder = SimpleBuilder(DescribeUserScramCredentialsRequest(users=names))
    return requester.send_to_least_loaded(builder, DescribeUserScramCredentialsResponse, read)


def _info(found: CredentialInfo) -> ScramCredentialInfo:
    mechanism = SCRAM_MECHANISMS_BY_CODE.get(found.mechanism)
    return ScramCredentialInfo(_UNKNOWN if mechanism is None else mechanism.name, found.iterations)


def alter_user_scram_credentials(
    requester: Requester,
    alterations: UserScramCredentialAlteration | Iterable[UserScramCredentialAlteration],
    *,
    timeout: float | None = None,
) -> Steps[None]:
    """Add, replace and remove SCRAM credentials of users (KIP-554).

    The client computes the salted passwords, so that no password is sent. Each user succeeds or
    fails alone. Connections that are open remain authenticated. A broker accepts a new
    credential once it has applied the metadata record, shortly after this call.

    Raises:
        ResourceNotFoundError: A credential to remove does not exist.
        DuplicateResourceError: A user is given twice, be it with two mechanisms.
        UnacceptableCredentialError: The broker refuses a name or an iteration count.
        ClusterAuthorizationError: The client may not ALTER the cluster.
    """
    wanted = check_alterations(alterations)
    requester.limit(timeout)
    request = AlterUserScramCredentialsRequest(
        deletions=[
            ScramCredentialDeletion(name=each.user, mechanism=SCRAM_MECHANISMS[each.mechanism].code)
            for each in wanted
            if isinstance(each, UserScramCredentialDeletion)
        ],
        upsertions=[
            _upsertion(each) for each in wanted if isinstance(each, UserScramCredentialUpsertion)
        ],
    )
    builder = SimpleBuilder(request)
    return raising(
        requester.send_to_controller(builder, AlterUserScramCredentialsResponse, _failures)
    )


def _upsertion(alteration: UserScramCredentialUpsertion) -> ScramCredentialUpsertion:
    name, iterations = alteration.credential_info
    mechanism = SCRAM_MECHANISMS[name]
    salt = random_salt() if alteration.salt is None else alteration.salt
    password = alteration.password.reveal().encode()
    return ScramCredentialUpsertion(
        name=alteration.user,
        mechanism=mechanism.code,
        iterations=iterations,
        salt=salt,
        salted_password=salted_password(mechanism.hash_name, password, salt, iterations),
    )


def _failures(response: AlterUserScramCredentialsResponse) -> dict[str, KafkaError]:
    failures = {}
    for result in response.results:
        error = item_error(f"user {result.user!r}", result.error_code, result.error_message)
        if isinstance(error, NotControllerError):
            raise error  # of the whole request, which is sent again to the new controller
        if error is not None:
            failures[result.user] = error
    return failures
