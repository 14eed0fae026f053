"""Admin calls for SCRAM credentials of users."""

from collections.abc import Sequence

from kclient.admin.requester import Requester, item_error, raise_failures
from kclient.admin.scram_types import (
    ScramCredentialInfo,
    UserScramCredentialAlteration,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from kclient.client.client_request import SimpleBuilder
from kclient.common.broker_errors import NotControllerError, error_for_code
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

ScramCredentials = dict[str, tuple[ScramCredentialInfo, ...]]


def describe_user_scram_credentials(
    requester: Requester, users: Sequence[str] | None, deadline_ms: float
) -> Steps[ScramCredentials]:
    """Return the credentials of users, None for all users."""
    names = None if users is None else [UserName(name=user) for user in users]

    def read(response: DescribeUserScramCredentialsResponse) -> ScramCredentials:
        error = error_for_code(response.error_code, response.error_message)
        if error is not None:
            raise error
        described, failures = {}, {}
        for result in response.results:
            error = item_error(f"user {result.user!r}", result.error_code, result.error_message)
            if error is not None:
                failures[result.user] = error
            described[result.user] = tuple(sorted(map(_info, result.credential_infos)))
        raise_failures(failures)
        return described

    builder = SimpleBuilder(DescribeUserScramCredentialsRequest(users=names))
    return requester.send_to_least_loaded(
        builder, DescribeUserScramCredentialsResponse, read, deadline_ms
    )


def _info(found: CredentialInfo) -> ScramCredentialInfo:
    mechanism = SCRAM_MECHANISMS_BY_CODE.get(found.mechanism)
    return ScramCredentialInfo(_UNKNOWN if mechanism is None else mechanism.name, found.iterations)


def alter_user_scram_credentials(
    requester: Requester, alterations: Sequence[UserScramCredentialAlteration], deadline_ms: float
) -> Steps[None]:
    """Add, replace and remove credentials."""
    request = AlterUserScramCredentialsRequest(
        deletions=[
            ScramCredentialDeletion(name=each.user, mechanism=SCRAM_MECHANISMS[each.mechanism].code)
            for each in alterations
            if isinstance(each, UserScramCredentialDeletion)
        ],
        upsertions=[
            _upsertion(each)
            for each in alterations
            if isinstance(each, UserScramCredentialUpsertion)
        ],
    )
    raise_failures(
        (
            yield from requester.send_to_controller(
                SimpleBuilder(request), AlterUserScramCredentialsResponse, _failures, deadline_ms
            )
        )
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
