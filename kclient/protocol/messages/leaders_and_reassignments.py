"""Leaders and replicas of partitions.

- ElectLeaders (43).
- AlterPartitionReassignments (45), ListPartitionReassignments (46): KIP-455.
"""

from kclient.protocol.api_keys import ApiKey
from kclient.protocol.fields import Struct, array, boolean, int8, int16, int32, string
from kclient.protocol.message import Request, Response


class ElectLeadersPartitionResult(Struct):
    """The outcome for a partition."""

    partition_id: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


class ReplicaElectionResult(Struct):
    """The outcomes for a topic."""

    topic: str = string()
    partition_result: list[ElectLeadersPartitionResult] = array(ElectLeadersPartitionResult)


class ElectLeadersResponse(Response, versions="0-2", flexible="2+"):
    """The outcome for each partition."""

    throttle_time_ms: int = int32()
    error_code: int = int16("1+")
    replica_election_results: list[ReplicaElectionResult] = array(ReplicaElectionResult)


class ElectLeadersTopicPartitions(Struct):
    """Topic with partitions."""

    topic: str = string(map_key=True)
    partitions: list[int] = array(int32)


class ElectLeadersRequest(
    Request,
    api_key=ApiKey.ELECT_LEADERS,
    response=ElectLeadersResponse,
    versions="0-2",
    flexible="2+",
):
    """Elects the leaders of partitions."""

    election_type: int = int8("1+")
    topic_partitions: list[ElectLeadersTopicPartitions] | None = array(
        ElectLeadersTopicPartitions, nullable="0+"
    )
    timeout_ms: int = int32(default=60000)


class ReassignablePartitionResponse(Struct):
    """The outcome for a partition."""

    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


class ReassignableTopicResponse(Struct):
    """The outcomes for a topic."""

    name: str = string()
    partitions: list[ReassignablePartitionResponse] = array(ReassignablePartitionResponse)


class AlterPartitionReassignmentsResponse(Response, versions="0-1", flexible="0+"):
    """The outcome for each partition."""

    throttle_time_ms: int = int32()
    allow_replication_factor_change: bool = boolean("1+", default=True, ignorable=True)
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    responses: list[ReassignableTopicResponse] = array(ReassignableTopicResponse)


class ReassignablePartition(Struct):
    """Partition with its target replicas; null cancels its reassignment."""

    partition_index: int = int32()
    replicas: list[int] | None = array(int32, nullable="0+", default=None)


class ReassignableTopic(Struct):
    """Topic with partitions to reassign."""

    name: str = string()
    partitions: list[ReassignablePartition] = array(ReassignablePartition)


class AlterPartitionReassignmentsRequest(
    Request,
    api_key=ApiKey.ALTER_PARTITION_REASSIGNMENTS,
    response=AlterPartitionReassignmentsResponse,
    versions="0-1",
    flexible="0+",
):
    """Starts or cancels reassignments of partitions."""

    timeout_ms: int = int32(default=60000)
    allow_replication_factor_change: bool = boolean("1+", default=True)
    topics: list[ReassignableTopic] = array(ReassignableTopic)


class OngoingPartitionReassignment(Struct):
    """Ongoing reassignment of a partition."""

    partition_index: int = int32()
    replicas: list[int] = array(int32)
    adding_replicas: list[int] = array(int32)
    removing_replicas: list[int] = array(int32)


class OngoingTopicReassignment(Struct):
    """Ongoing reassignments of a topic."""

    name: str = string()
    partitions: list[OngoingPartitionReassignment] = array(OngoingPartitionReassignment)


class ListPartitionReassignmentsResponse(Response, versions="0", flexible="0+"):
    """The ongoing reassignments."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    topics: list[OngoingTopicReassignment] = array(OngoingTopicReassignment)


class ListPartitionReassignmentsTopics(Struct):
    """Topic with partitions."""

    name: str = string()
    partition_indexes: list[int] = array(int32)


class ListPartitionReassignmentsRequest(
    Request,
    api_key=ApiKey.LIST_PARTITION_REASSIGNMENTS,
    response=ListPartitionReassignmentsResponse,
    versions="0",
    flexible="0+",
):
    """Lists the ongoing reassignments."""

    timeout_ms: int = int32(default=60000)
    topics: list[ListPartitionReassignmentsTopics] | None = array(
        ListPartitionReassignmentsTopics, nullable="0+", default=None
    )
