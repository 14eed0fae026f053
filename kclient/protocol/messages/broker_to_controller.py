"""Requests of brokers to the active controller.

- AlterPartition (56): in-sync replicas (KIP-497).
- Envelope (58): a client's request that a broker forwards (KIP-590).
- AllocateProducerIds (67): blocks of producer ids (KIP-730).
- AssignReplicasToDirs (73): directories of replicas (KIP-858).
"""

from kclient.protocol.api_keys import ApiKey
from kclient.protocol.fields import (
    Struct,
    array,
    binary,
    boolean,
    int8,
    int16,
    int32,
    int64,
    string,
    uuid,
)
from kclient.protocol.message import Message, Request, Response


class AlterPartitionResponsePartitionData(Struct):
    """State of a partition, or the error."""

    partition_index: int = int32()
    error_code: int = int16()
    leader_id: int = int32()
    leader_epoch: int = int32()
    isr: list[int] = array(int32)
    leader_recovery_state: int = int8("1+", default=0, ignorable=True)
    partition_epoch: int = int32()


class AlterPartitionResponseTopicData(Struct):
    """Topic with changed partitions."""

    topic_id: bytes = uuid("2+", ignorable=True)
    partitions: list[AlterPartitionResponsePartitionData] = array(
        AlterPartitionResponsePartitionData
    )


class AlterPartitionResponse(Response, versions="2-3", flexible="0+"):
    """State of each partition."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    topics: list[AlterPartitionResponseTopicData] = array(AlterPartitionResponseTopicData)


class BrokerState(Struct):
    """In-sync replica with its broker epoch, -1 if it is not to be checked."""

    broker_id: int = int32("3+")
    broker_epoch: int = int64("3+", default=-1)


class AlterPartitionRequestPartitionData(Struct):
    """Wanted in-sync replicas of a partition."""

    partition_index: int = int32()
    leader_epoch: int = int32()
    new_isr: list[int] = array(int32, "0-2")
    new_isr_with_epochs: list[BrokerState] = array(BrokerState, "3+")
    leader_recovery_state: int = int8("1+", default=0)
    partition_epoch: int = int32()


class AlterPartitionRequestTopicData(Struct):
    """Topic with partitions to change."""

    topic_id: bytes = uuid("2+", ignorable=True)
    partitions: list[AlterPartitionRequestPartitionData] = array(AlterPartitionRequestPartitionData)


class AlterPartitionRequest(
    Request,
    api_key=ApiKey.ALTER_PARTITION,
    response=AlterPartitionResponse,
    versions="2-3",
    flexible="0+",
):
    """Asks the controller to change the in-sync replicas of partitions."""

    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)
    topics: list[AlterPartitionRequestTopicData] = array(AlterPartitionRequestTopicData)


class EnvelopeResponse(Response, versions="0", flexible="0+"):
    """The controller's response to the client."""

    response_data: bytes | None = binary(nullable="0+", default=None)
    error_code: int = int16()


class EnvelopeRequest(
    Request, api_key=ApiKey.ENVELOPE, response=EnvelopeResponse, versions="0", flexible="0+"
):
    """Forwards the request of a client to the controller."""

    request_data: bytes = binary()
    request_principal: bytes | None = binary(nullable="0+")
    client_host_address: bytes = binary()


class AllocateProducerIdsResponse(Response, versions="0", flexible="0+"):
    """The block of producer ids."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    producer_id_start: int = int64()
    producer_id_len: int = int32()


class AllocateProducerIdsRequest(
    Request,
    api_key=ApiKey.ALLOCATE_PRODUCER_IDS,
    response=AllocateProducerIdsResponse,
    versions="0",
    flexible="0+",
):
    """Asks the controller for a block of producer ids."""

    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)


class AssignReplicasToDirsResponsePartitionData(Struct):
    """The outcome for a partition."""

    partition_index: int = int32()
    error_code: int = int16()


class AssignReplicasToDirsResponseTopicData(Struct):
    """Topic with replicas in a directory."""

    topic_id: bytes = uuid()
    partitions: list[AssignReplicasToDirsResponsePartitionData] = array(
        AssignReplicasToDirsResponsePartitionData
    )


class AssignReplicasToDirsResponseDirectoryData(Struct):
    """Directory with its replicas."""

    id: bytes = uuid()
    topics: list[AssignReplicasToDirsResponseTopicData] = array(
        AssignReplicasToDirsResponseTopicData
    )


class AssignReplicasToDirsResponse(Response, versions="0", flexible="0+"):
    """The outcome for each partition."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    directories: list[AssignReplicasToDirsResponseDirectoryData] = array(
        AssignReplicasToDirsResponseDirectoryData
    )


class AssignReplicasToDirsRequestPartitionData(Struct):
    """Partition with a replica in a directory."""

    partition_index: int = int32()


class AssignReplicasToDirsRequestTopicData(Struct):
    """Topic with replicas in a directory."""

    topic_id: bytes = uuid()
    partitions: list[AssignReplicasToDirsRequestPartitionData] = array(
        AssignReplicasToDirsRequestPartitionData
    )


class AssignReplicasToDirsRequestDirectoryData(Struct):
    """Directory with its replicas."""

    id: bytes = uuid()
    topics: list[AssignReplicasToDirsRequestTopicData] = array(AssignReplicasToDirsRequestTopicData)


class AssignReplicasToDirsRequest(
    Request,
    api_key=ApiKey.ASSIGN_REPLICAS_TO_DIRS,
    response=AssignReplicasToDirsResponse,
    versions="0",
    flexible="0+",
):
    """Reports in which directories a broker has its replicas."""

    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)
    directories: list[AssignReplicasToDirsRequestDirectoryData] = array(
        AssignReplicasToDirsRequestDirectoryData
    )


class DefaultPrincipalData(Message, versions="0", flexible="0+"):
    """Principal of a forwarded request."""

    type: str = string()
    name: str = string()
    token_authenticated: bool = boolean()
