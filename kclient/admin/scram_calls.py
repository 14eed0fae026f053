"""Admin calls for SCRAM credentials of users."""

from collections.abc import Iterable

from kclient.admin.requester import Requester, item_error, raise_error
from kclient.admin.results import Outcomes, Results, raising_if_single
from kclient.admin.scram_types import (
    ScramCredentialInfo,
    UserScramCredentialAlteration,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from kclient.admin.security_arguments import check_alterations, check_users
from kclient.client.client_request import SimpleBuilder
from kclient.common.broker_errors import NotControllerError
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
) -> Steps[Results[str, tuple[ScramCredentialInfo, ...]]]:
    """Return the SCRAM credentials of users, sorted and without secrets (KIP-554).

    Args:
        users: Names of users; None for all users that have credentials.
        timeout: Timeout in seconds.

    Returns:
        Credentials or error by user.

    Raises:
        ResourceNotFoundError: A user has no credentials; the error of this user.
        DuplicateResourceError: A user is given twice; the error of this user.
        ClusterAuthorizationError: The client may not DESCRIBE the cluster.
    """
    wanted = check_users(users)
    requester.limit(timeout)
    names = None if wanted is None else [UserName(name=user) for user in wanted]

    def read(
        response: DescribeUserScramCredentialsResponse,
    ) -> Results[str, tuple[ScramCredentialInfo, ...]]:
        raise_error(response.error_code, response.error_message)
        outcomes: Outcomes[str, tuple[ScramCredentialInfo, ...]] = {}
        for result in response.results:
            error = item_error(f"user {result.user!r}", result.error_code, result.error_message)
            infos = tuple(sorted(map(_info, result.credential_infos)))
            outcomes[result.user] = error or infos
        return Results("describe_user_scram_credentials", outcomes, wanted)

    builder = SimpleBuilder(DescribeUserScramCredentialsRequest(users=names))
    steps = requester.send_to_least_loaded(builder, DescribeUserScramCredentialsResponse, read)
    return raising_if_single(steps, users, str)


def _info(found: CredentialInfo) -> ScramCredentialInfo:
    mechanism = SCRAM_MECHANISMS_BY_CODE.get(found.mechanism)
    return ScramCredentialInfo(_UNKNOWN if mechanism is None else mechanism.name, found.iterations)


def alter_user_scram_credentials(
    requester: Requester,
    alterations: UserScramCredentialAlteration | Iterable[UserScramCredentialAlteration],
    *,
    timeout: float | None = None,
) -> Steps[Results[str, None]]:
    """Add, replace and remove SCRAM credentials of users (KIP-554).

    The client computes the salted passwords, so that no password is sent. Each user succeeds or
    fails alone. Connections that are open remain authenticated. A broker accepts a new
    credential once it has applied the metadata record, shortly after this call.

    Returns:
        None or error by user.

    Raises:
        ResourceNotFoundError: A credential to remove does not exist; the error of this user.
        DuplicateResourceError: A user is given twice, be it with two mechanisms; the error of this
            user.
        UnacceptableCredentialError: The broker refuses a name or an iteration count; the error of
            this user.
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
    users = [each.user for each in wanted]
    steps = requester.send_to_controller(
        builder,
        AlterUserScramCredentialsResponse,
        lambda response: Results("alter_user_scram_credentials", _altered(response), users),
    )
    kinds = (UserScramCredentialUpsertion, UserScramCredentialDeletion)
    return raising_if_single(steps, alterations, kinds)


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


def _altered(response: AlterUserScramCredentialsResponse) -> Outcomes[str, None]:
    outcomes: Outcomes[str, None] = {}
    for result in response.results:
        error = item_error(f"user {result.user!r}", result.error_code, result.error_message)
        if isinstance(error, NotControllerError):
            raise error  # of the whole request, which is sent again to the new controller
        outcomes[result.user] = error
    return outcomes
