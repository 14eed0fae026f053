"""AlterUserScramCredentials (Kafka: ScramControlManager). Each user succeeds or fails alone."""

from collections.abc import Iterator

from kclient.broker.controller.cluster_view import ClusterView, ControllerResult
from kclient.broker.metadata.scram_credentials import scram_record
from kclient.common.broker_errors import (
    NONE,
    DuplicateResourceError,
    ResourceNotFoundError,
    UnacceptableCredentialError,
    UnsupportedSaslMechanismError,
    UnsupportedVersionError,
    code_of,
)
from kclient.common.errors import KafkaError
from kclient.network.sasl.scram import SCRAM_MECHANISMS_BY_CODE, ScramMechanism
from kclient.protocol.messages.metadata_records import (
    MetadataRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)
from kclient.protocol.messages.user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)

Alteration = ScramCredentialDeletion | ScramCredentialUpsertion


def alter_user_scram_credentials(
    view: ClusterView, request: AlterUserScramCredentialsRequest
) -> ControllerResult[AlterUserScramCredentialsResponse]:
    """Plan changes of credentials.

    A user that is named twice is refused, even with two mechanisms, unless its first change is
    refused for another reason.
    """
    outcomes: dict[str, MetadataRecord | KafkaError] = {}
    for alteration in _alterations(request):
        known = outcomes.get(alteration.name)
        if isinstance(known, KafkaError):
            continue
        try:
            if known is not None:
                raise DuplicateResourceError(
                    "A user credential cannot be altered twice in the same request"
                )
            outcomes[alteration.name] = _record(view, alteration)
        except KafkaError as error:
            outcomes[alteration.name] = error
    records = [each for each in outcomes.values() if not isinstance(each, KafkaError)]
    results = [_result(user, outcome) for user, outcome in outcomes.items()]
    return ControllerResult(records, AlterUserScramCredentialsResponse(results=results))


def _alterations(request: AlterUserScramCredentialsRequest) -> Iterator[Alteration]:
    yield from request.deletions
    yield from request.upsertions


def _record(view: ClusterView, alteration: Alteration) -> MetadataRecord:
    """Return the record of a change, or raise why it is refused."""
    if not view.metadata_version.has_scram:
        raise UnsupportedVersionError("The current metadata.version does not support SCRAM")
    if not alteration.name:
        raise UnacceptableCredentialError("Username must not be empty")
    mechanism = SCRAM_MECHANISMS_BY_CODE.get(alteration.mechanism)
    if mechanism is None:
        raise UnsupportedSaslMechanismError("Unknown SCRAM mechanism")
    if isinstance(alteration, ScramCredentialUpsertion):
        return _upsertion(mechanism, alteration)
    if (mechanism.code, alteration.name) not in view.image.scram:
        raise ResourceNotFoundError("Attempt to delete a user credential that does not exist")
    return RemoveUserScramCredentialRecord(name=alteration.name, mechanism=mechanism.code)


def _upsertion(
    mechanism: ScramMechanism, upsertion: ScramCredentialUpsertion
) -> UserScramCredentialRecord:
    if upsertion.iterations < mechanism.least_iterations:
        raise UnacceptableCredentialError("Too few iterations")
    if upsertion.iterations > mechanism.most_iterations:
        raise UnacceptableCredentialError("Too many iterations")
    if not upsertion.salted_password:
        raise UnacceptableCredentialError("The salted password must not be empty")
    return scram_record(
        mechanism,
        upsertion.name,
        upsertion.iterations,
        salt=upsertion.salt,
        salted=upsertion.salted_password,
    )


def _result(user: str, outcome: MetadataRecord | KafkaError) -> AlterUserScramCredentialsResult:
    if isinstance(outcome, KafkaError):
        return AlterUserScramCredentialsResult(
            user=user, error_code=code_of(outcome), error_message=str(outcome)
        )
    return AlterUserScramCredentialsResult(user=user, error_code=NONE, error_message=None)
