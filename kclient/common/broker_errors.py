"""Error codes of the protocol, one class each.

Source: the error table of Apache Kafka 4.4 (``org.apache.kafka.common.protocol.Errors``). A class
has the name of Kafka's, with ``Error`` for ``Exception``; its base determines whether it is
retriable and whether metadata must be updated. `error_for_code` creates the error of a response.
"""

from kclient.common.errors import (
    AuthenticationError,
    FatalError,
    InvalidMetadataError,
    KafkaError,
    KafkaTimeoutError,
    RetriableError,
)

NONE = 0


class UnknownServerError(KafkaError, code=-1, name="UNKNOWN_SERVER_ERROR"): ...


class OffsetOutOfRangeError(KafkaError, code=1, name="OFFSET_OUT_OF_RANGE"): ...


class CorruptRecordError(RetriableError, code=2, name="CORRUPT_MESSAGE"): ...


class UnknownTopicOrPartitionError(
    InvalidMetadataError, code=3, name="UNKNOWN_TOPIC_OR_PARTITION"
): ...


class InvalidFetchSizeError(KafkaError, code=4, name="INVALID_FETCH_SIZE"): ...


class LeaderNotAvailableError(InvalidMetadataError, code=5, name="LEADER_NOT_AVAILABLE"): ...


class NotLeaderOrFollowerError(InvalidMetadataError, code=6, name="NOT_LEADER_OR_FOLLOWER"): ...


class RequestTimedOutError(KafkaTimeoutError, code=7, name="REQUEST_TIMED_OUT"): ...


class BrokerNotAvailableError(KafkaError, code=8, name="BROKER_NOT_AVAILABLE"): ...


class ReplicaNotAvailableError(InvalidMetadataError, code=9, name="REPLICA_NOT_AVAILABLE"): ...


class RecordTooLargeError(KafkaError, code=10, name="MESSAGE_TOO_LARGE"): ...


class ControllerMovedError(KafkaError, code=11, name="STALE_CONTROLLER_EPOCH"): ...


class OffsetMetadataTooLargeError(KafkaError, code=12, name="OFFSET_METADATA_TOO_LARGE"): ...


class NetworkError(InvalidMetadataError, code=13, name="NETWORK_EXCEPTION"): ...


class CoordinatorLoadInProgressError(
    RetriableError, code=14, name="COORDINATOR_LOAD_IN_PROGRESS"
): ...


class CoordinatorNotAvailableError(RetriableError, code=15, name="COORDINATOR_NOT_AVAILABLE"): ...


class NotCoordinatorError(RetriableError, code=16, name="NOT_COORDINATOR"): ...


class InvalidTopicError(KafkaError, code=17, name="INVALID_TOPIC_EXCEPTION"): ...


class RecordBatchTooLargeError(KafkaError, code=18, name="RECORD_LIST_TOO_LARGE"): ...


class NotEnoughReplicasError(RetriableError, code=19, name="NOT_ENOUGH_REPLICAS"): ...


class NotEnoughReplicasAfterAppendError(
    RetriableError, code=20, name="NOT_ENOUGH_REPLICAS_AFTER_APPEND"
): ...


class InvalidRequiredAcksError(KafkaError, code=21, name="INVALID_REQUIRED_ACKS"): ...


class IllegalGenerationError(KafkaError, code=22, name="ILLEGAL_GENERATION"): ...


class InconsistentGroupProtocolError(KafkaError, code=23, name="INCONSISTENT_GROUP_PROTOCOL"): ...


class InvalidGroupIdError(KafkaError, code=24, name="INVALID_GROUP_ID"): ...


class UnknownMemberIdError(KafkaError, code=25, name="UNKNOWN_MEMBER_ID"): ...


class InvalidSessionTimeoutError(KafkaError, code=26, name="INVALID_SESSION_TIMEOUT"): ...


class RebalanceInProgressError(KafkaError, code=27, name="REBALANCE_IN_PROGRESS"): ...


class InvalidCommitOffsetSizeError(KafkaError, code=28, name="INVALID_COMMIT_OFFSET_SIZE"): ...


class TopicAuthorizationError(KafkaError, code=29, name="TOPIC_AUTHORIZATION_FAILED"): ...


class GroupAuthorizationError(KafkaError, code=30, name="GROUP_AUTHORIZATION_FAILED"): ...


class ClusterAuthorizationError(KafkaError, code=31, name="CLUSTER_AUTHORIZATION_FAILED"): ...


class InvalidTimestampError(KafkaError, code=32, name="INVALID_TIMESTAMP"): ...


class UnsupportedSaslMechanismError(
    AuthenticationError, code=33, name="UNSUPPORTED_SASL_MECHANISM"
): ...


class IllegalSaslStateError(AuthenticationError, code=34, name="ILLEGAL_SASL_STATE"): ...


class UnsupportedVersionError(KafkaError, code=35, name="UNSUPPORTED_VERSION"): ...


class TopicExistsError(KafkaError, code=36, name="TOPIC_ALREADY_EXISTS"): ...


class InvalidPartitionsError(KafkaError, code=37, name="INVALID_PARTITIONS"): ...


class InvalidReplicationFactorError(KafkaError, code=38, name="INVALID_REPLICATION_FACTOR"): ...


class InvalidReplicaAssignmentError(KafkaError, code=39, name="INVALID_REPLICA_ASSIGNMENT"): ...


class InvalidConfigurationError(KafkaError, code=40, name="INVALID_CONFIG"): ...


class NotControllerError(RetriableError, code=41, name="NOT_CONTROLLER"): ...


class InvalidRequestError(KafkaError, code=42, name="INVALID_REQUEST"): ...


class UnsupportedForMessageFormatError(
    KafkaError, code=43, name="UNSUPPORTED_FOR_MESSAGE_FORMAT"
): ...


class PolicyViolationError(KafkaError, code=44, name="POLICY_VIOLATION"): ...


class OutOfOrderSequenceError(KafkaError, code=45, name="OUT_OF_ORDER_SEQUENCE_NUMBER"): ...


class DuplicateSequenceError(KafkaError, code=46, name="DUPLICATE_SEQUENCE_NUMBER"): ...


class InvalidProducerEpochError(KafkaError, code=47, name="INVALID_PRODUCER_EPOCH"): ...


class InvalidTxnStateError(KafkaError, code=48, name="INVALID_TXN_STATE"): ...


class InvalidPidMappingError(KafkaError, code=49, name="INVALID_PRODUCER_ID_MAPPING"): ...


class InvalidTxnTimeoutError(KafkaError, code=50, name="INVALID_TRANSACTION_TIMEOUT"): ...


class ConcurrentTransactionsError(RetriableError, code=51, name="CONCURRENT_TRANSACTIONS"): ...


class TransactionCoordinatorFencedError(
    KafkaError, code=52, name="TRANSACTION_COORDINATOR_FENCED"
): ...


class TransactionalIdAuthorizationError(
    KafkaError, code=53, name="TRANSACTIONAL_ID_AUTHORIZATION_FAILED"
): ...


class SecurityDisabledError(KafkaError, code=54, name="SECURITY_DISABLED"): ...


class OperationNotAttemptedError(KafkaError, code=55, name="OPERATION_NOT_ATTEMPTED"): ...


class KafkaStorageError(InvalidMetadataError, code=56, name="KAFKA_STORAGE_ERROR"): ...


class LogDirNotFoundError(KafkaError, code=57, name="LOG_DIR_NOT_FOUND"): ...


class SaslAuthenticationError(AuthenticationError, code=58, name="SASL_AUTHENTICATION_FAILED"): ...


class UnknownProducerIdError(KafkaError, code=59, name="UNKNOWN_PRODUCER_ID"): ...


class ReassignmentInProgressError(KafkaError, code=60, name="REASSIGNMENT_IN_PROGRESS"): ...


class DelegationTokenDisabledError(KafkaError, code=61, name="DELEGATION_TOKEN_AUTH_DISABLED"): ...


class DelegationTokenNotFoundError(KafkaError, code=62, name="DELEGATION_TOKEN_NOT_FOUND"): ...


class DelegationTokenOwnerMismatchError(
    KafkaError, code=63, name="DELEGATION_TOKEN_OWNER_MISMATCH"
): ...


class UnsupportedByAuthenticationError(
    KafkaError, code=64, name="DELEGATION_TOKEN_REQUEST_NOT_ALLOWED"
): ...


class DelegationTokenAuthorizationError(
    KafkaError, code=65, name="DELEGATION_TOKEN_AUTHORIZATION_FAILED"
): ...


class DelegationTokenExpiredError(KafkaError, code=66, name="DELEGATION_TOKEN_EXPIRED"): ...


class InvalidPrincipalTypeError(KafkaError, code=67, name="INVALID_PRINCIPAL_TYPE"): ...


class GroupNotEmptyError(KafkaError, code=68, name="NON_EMPTY_GROUP"): ...


class GroupIdNotFoundError(KafkaError, code=69, name="GROUP_ID_NOT_FOUND"): ...


class FetchSessionIdNotFoundError(RetriableError, code=70, name="FETCH_SESSION_ID_NOT_FOUND"): ...


class InvalidFetchSessionEpochError(
    RetriableError, code=71, name="INVALID_FETCH_SESSION_EPOCH"
): ...


class ListenerNotFoundError(InvalidMetadataError, code=72, name="LISTENER_NOT_FOUND"): ...


class TopicDeletionDisabledError(KafkaError, code=73, name="TOPIC_DELETION_DISABLED"): ...


class FencedLeaderEpochError(InvalidMetadataError, code=74, name="FENCED_LEADER_EPOCH"): ...


class UnknownLeaderEpochError(RetriableError, code=75, name="UNKNOWN_LEADER_EPOCH"): ...


class UnsupportedCompressionTypeError(KafkaError, code=76, name="UNSUPPORTED_COMPRESSION_TYPE"): ...


class StaleBrokerEpochError(KafkaError, code=77, name="STALE_BROKER_EPOCH"): ...


class OffsetNotAvailableError(RetriableError, code=78, name="OFFSET_NOT_AVAILABLE"): ...


class MemberIdRequiredError(KafkaError, code=79, name="MEMBER_ID_REQUIRED"): ...


class PreferredLeaderNotAvailableError(
    InvalidMetadataError, code=80, name="PREFERRED_LEADER_NOT_AVAILABLE"
): ...


class GroupMaxSizeReachedError(KafkaError, code=81, name="GROUP_MAX_SIZE_REACHED"): ...


class FencedInstanceIdError(KafkaError, code=82, name="FENCED_INSTANCE_ID"): ...


class EligibleLeadersNotAvailableError(
    InvalidMetadataError, code=83, name="ELIGIBLE_LEADERS_NOT_AVAILABLE"
): ...


class ElectionNotNeededError(InvalidMetadataError, code=84, name="ELECTION_NOT_NEEDED"): ...


class NoReassignmentInProgressError(KafkaError, code=85, name="NO_REASSIGNMENT_IN_PROGRESS"): ...


class GroupSubscribedToTopicError(KafkaError, code=86, name="GROUP_SUBSCRIBED_TO_TOPIC"): ...


class InvalidRecordError(KafkaError, code=87, name="INVALID_RECORD"): ...


class UnstableOffsetCommitError(RetriableError, code=88, name="UNSTABLE_OFFSET_COMMIT"): ...


class ThrottlingQuotaExceededError(RetriableError, code=89, name="THROTTLING_QUOTA_EXCEEDED"): ...


class ProducerFencedError(FatalError, code=90, name="PRODUCER_FENCED"): ...


class ResourceNotFoundError(KafkaError, code=91, name="RESOURCE_NOT_FOUND"): ...


class DuplicateResourceError(KafkaError, code=92, name="DUPLICATE_RESOURCE"): ...


class UnacceptableCredentialError(KafkaError, code=93, name="UNACCEPTABLE_CREDENTIAL"): ...


class InconsistentVoterSetError(KafkaError, code=94, name="INCONSISTENT_VOTER_SET"): ...


class InvalidUpdateVersionError(KafkaError, code=95, name="INVALID_UPDATE_VERSION"): ...


class FeatureUpdateFailedError(KafkaError, code=96, name="FEATURE_UPDATE_FAILED"): ...


class PrincipalDeserializationError(
    KafkaError, code=97, name="PRINCIPAL_DESERIALIZATION_FAILURE"
): ...


class SnapshotNotFoundError(KafkaError, code=98, name="SNAPSHOT_NOT_FOUND"): ...


class PositionOutOfRangeError(KafkaError, code=99, name="POSITION_OUT_OF_RANGE"): ...


class UnknownTopicIdError(InvalidMetadataError, code=100, name="UNKNOWN_TOPIC_ID"): ...


class DuplicateBrokerRegistrationError(
    KafkaError, code=101, name="DUPLICATE_BROKER_REGISTRATION"
): ...


class BrokerIdNotRegisteredError(KafkaError, code=102, name="BROKER_ID_NOT_REGISTERED"): ...


class InconsistentTopicIdError(InvalidMetadataError, code=103, name="INCONSISTENT_TOPIC_ID"): ...


class InconsistentClusterIdError(KafkaError, code=104, name="INCONSISTENT_CLUSTER_ID"): ...


class TransactionalIdNotFoundError(KafkaError, code=105, name="TRANSACTIONAL_ID_NOT_FOUND"): ...


class FetchSessionTopicIdError(RetriableError, code=106, name="FETCH_SESSION_TOPIC_ID_ERROR"): ...


class IneligibleReplicaError(KafkaError, code=107, name="INELIGIBLE_REPLICA"): ...


class NewLeaderElectedError(KafkaError, code=108, name="NEW_LEADER_ELECTED"): ...


class OffsetMovedToTieredStorageError(
    KafkaError, code=109, name="OFFSET_MOVED_TO_TIERED_STORAGE"
): ...


class FencedMemberEpochError(KafkaError, code=110, name="FENCED_MEMBER_EPOCH"): ...


class UnreleasedInstanceIdError(KafkaError, code=111, name="UNRELEASED_INSTANCE_ID"): ...


class UnsupportedAssignorError(KafkaError, code=112, name="UNSUPPORTED_ASSIGNOR"): ...


class StaleMemberEpochError(KafkaError, code=113, name="STALE_MEMBER_EPOCH"): ...


class MismatchedEndpointTypeError(KafkaError, code=114, name="MISMATCHED_ENDPOINT_TYPE"): ...


class UnsupportedEndpointTypeError(KafkaError, code=115, name="UNSUPPORTED_ENDPOINT_TYPE"): ...


class UnknownControllerIdError(KafkaError, code=116, name="UNKNOWN_CONTROLLER_ID"): ...


class UnknownSubscriptionIdError(KafkaError, code=117, name="UNKNOWN_SUBSCRIPTION_ID"): ...


class TelemetryTooLargeError(KafkaError, code=118, name="TELEMETRY_TOO_LARGE"): ...


class InvalidRegistrationError(KafkaError, code=119, name="INVALID_REGISTRATION"): ...


class TransactionAbortableError(KafkaError, code=120, name="TRANSACTION_ABORTABLE"): ...


class InvalidRecordStateError(KafkaError, code=121, name="INVALID_RECORD_STATE"): ...


class ShareSessionNotFoundError(RetriableError, code=122, name="SHARE_SESSION_NOT_FOUND"): ...


class InvalidShareSessionEpochError(
    RetriableError, code=123, name="INVALID_SHARE_SESSION_EPOCH"
): ...


class FencedStateEpochError(KafkaError, code=124, name="FENCED_STATE_EPOCH"): ...


class InvalidVoterKeyError(KafkaError, code=125, name="INVALID_VOTER_KEY"): ...


class DuplicateVoterError(KafkaError, code=126, name="DUPLICATE_VOTER"): ...


class VoterNotFoundError(KafkaError, code=127, name="VOTER_NOT_FOUND"): ...


class InvalidRegularExpressionError(KafkaError, code=128, name="INVALID_REGULAR_EXPRESSION"): ...


class RebootstrapRequiredError(KafkaError, code=129, name="REBOOTSTRAP_REQUIRED"): ...


class StreamsInvalidTopologyError(KafkaError, code=130, name="STREAMS_INVALID_TOPOLOGY"): ...


class StreamsInvalidTopologyEpochError(
    KafkaError, code=131, name="STREAMS_INVALID_TOPOLOGY_EPOCH"
): ...


class StreamsTopologyFencedError(KafkaError, code=132, name="STREAMS_TOPOLOGY_FENCED"): ...


class ShareSessionLimitReachedError(
    RetriableError, code=133, name="SHARE_SESSION_LIMIT_REACHED"
): ...


class GroupDeletionFailedError(KafkaError, code=134, name="GROUP_DELETION_FAILED"): ...


class StreamsTopologyDescriptionUpdateFailedError(
    KafkaError, code=135, name="STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED"
): ...


class ControllerIdNotRegisteredError(KafkaError, code=136, name="CONTROLLER_ID_NOT_REGISTERED"): ...


def error_for_code(code: int, message: str | None = None) -> KafkaError | None:
    """Return the error of an error code, or None for code 0.

    Args:
        code: Error code of a response.
        message: Error message of the response, if any.
    """
    return None if code == NONE else error_of_code(code, message)


def error_of_code(code: int, message: str | None = None) -> KafkaError:
    """Return the error of an error code other than 0; see `error_for_code`."""
    kind = KafkaError.by_code(code)
    if kind is None:
        return UnknownServerError(f"unknown error code {code}: {message or 'no message'}")
    return kind(f"{kind.error_name}: {message}" if message else kind.error_name)


def code_of(error: BaseException | type[BaseException]) -> int:
    """Return the error code of an error; UNKNOWN_SERVER_ERROR if it has none."""
    code = getattr(error, "code", None)
    return code if isinstance(code, int) else -1
