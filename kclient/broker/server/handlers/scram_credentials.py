"""SCRAM credentials of users (KIP-554).

- AlterUserScramCredentials, version 0.
- DescribeUserScramCredentials, version 0.

The response to a change is sent when this broker has applied it, and at the latest 1 s after the
commit. Differences from Apache Kafka: an empty salted password is refused for its user, not for the
whole request.
"""

from collections import Counter, defaultdict

from kclient.broker.network.request_channel import Request
from kclient.broker.server.served_api import BrokerServices, ServedApi
from kclient.common.acls import AclOperation
from kclient.common.broker_errors import (
    NONE,
    DuplicateResourceError,
    ResourceNotFoundError,
    code_of,
)
from kclient.common.errors import KafkaError
from kclient.protocol.messages.user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)

_NO_MESSAGE = ""  # Apache Kafka's, instead of null


def _alter(
    services: BrokerServices, request: Request, body: AlterUserScramCredentialsRequest
) -> None:
    """Add, replace and remove credentials in one batch; a refused user does not affect others."""
    services.auth.require_cluster(request, AclOperation.ALTER)

    def on_done(outcome: AlterUserScramCredentialsResponse | KafkaError) -> None:
        if isinstance(outcome, KafkaError):
            outcome = failed_alteration(body, code_of(outcome))
        request.respond(outcome)

    services.controller.change(body, on_done)


def failed_alteration(
    body: AlterUserScramCredentialsRequest, code: int
) -> AlterUserScramCredentialsResponse:
    """Return the response that refuses a whole request."""
    users = dict.fromkeys(
        [*(each.name for each in body.deletions), *(each.name for each in body.upsertions)]
    )
    return AlterUserScramCredentialsResponse(
        results=[AlterUserScramCredentialsResult(user=user, error_code=code) for user in users]
    )


def _describe(
    services: BrokerServices, request: Request, body: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    """Describe mechanisms and iteration counts of users, all of them if the request names none."""
    services.auth.require_cluster(request, AclOperation.DESCRIBE)
    found: dict[str, list[CredentialInfo]] = defaultdict(list)
    for (mechanism, user), credential in services.metadata.image.scram.items():
        info = CredentialInfo(mechanism=mechanism, iterations=credential.iterations)
        found[user].append(info)
    named = Counter(user.name for user in body.users or ())
    return DescribeUserScramCredentialsResponse(
        error_message=_NO_MESSAGE,
        results=[
            _described(user, named[user], found.get(user, [])) for user in named or sorted(found)
        ],
    )


def _failed_description(
    body: DescribeUserScramCredentialsRequest, code: int
) -> DescribeUserScramCredentialsResponse:
    # As in Apache Kafka, the result of a user has the error without the name.
    results = [DescribeUserScramCredentialsResult(error_code=code) for _ in body.users or ()]
    return DescribeUserScramCredentialsResponse(error_code=code, results=results)


def _described(
    user: str, count: int, infos: list[CredentialInfo]
) -> DescribeUserScramCredentialsResult:
    error: KafkaError | None = None
    if count > 1:
        error = DuplicateResourceError(
            f"Cannot describe SCRAM credentials for the same user twice in a single request: {user}"
        )
    elif not infos:
        error = ResourceNotFoundError(
            f"Attempt to describe a user credential that does not exist: {user}"
        )
    return DescribeUserScramCredentialsResult(
        user=user,
        error_code=NONE if error is None else code_of(error),
        error_message=_NO_MESSAGE if error is None else str(error),
        credential_infos=[] if error is not None else sorted(infos, key=lambda i: i.mechanism),
    )


APIS = (
    ServedApi(AlterUserScramCredentialsRequest, _alter, failed_alteration),
    ServedApi(DescribeUserScramCredentialsRequest, _describe, _failed_description),
)
