"""Creation and deletion of topics and partitions.

- CreateTopics (19).
- CreatePartitions (37): adds partitions to topics.
- DeleteTopics (20): by name, from version 6 on also by id.
"""

from kclient.protocol.api_keys import ApiKey
from kclient.protocol.fields import Struct, array, boolean, int8, int16, int32, string, uuid
from kclient.protocol.message import Request, Response


class CreatableTopicConfigs(Struct):
    """A configuration value of a created topic."""

    name: str = string("5+")
    value: str | None = string("5+", nullable="5+")
    read_only: bool = boolean("5+")
    config_source: int = int8("5+", default=-1, ignorable=True)
    is_sensitive: bool = boolean("5+")


class CreatableTopicResult(Struct):
    """The outcome for a topic."""

    name: str = string(map_key=True)
    topic_id: bytes = uuid("7+", ignorable=True)
    error_code: int = int16()
    error_message: str | None = string("1+", nullable="0+", ignorable=True)
    topic_config_error_code: int = int16("5+", tag=0, ignorable=True)
    num_partitions: int = int32("5+", default=-1, ignorable=True)
    replication_factor: int = int16("5+", default=-1, ignorable=True)
    configs: list[CreatableTopicConfigs] | None = array(
        CreatableTopicConfigs, "5+", nullable="5+", ignorable=True
    )


class CreateTopicsResponse(Response, versions="2-7", flexible="5+"):
    """The outcome for each topic."""

    throttle_time_ms: int = int32("2+", ignorable=True)
    topics: list[CreatableTopicResult] = array(CreatableTopicResult)


class CreatableReplicaAssignment(Struct):
    """Brokers of a partition."""

    partition_index: int = int32(map_key=True)
    broker_ids: list[int] = array(int32)


class CreatableTopicConfig(Struct):
    """A configuration value to set."""

    name: str = string(map_key=True)
    value: str | None = string(nullable="0+")


class CreatableTopic(Struct):
    """Topic to create, with counts or with explicit assignments."""

    name: str = string(map_key=True)
    num_partitions: int = int32()
    replication_factor: int = int16()
    assignments: list[CreatableReplicaAssignment] = array(CreatableReplicaAssignment)
    configs: list[CreatableTopicConfig] = array(CreatableTopicConfig)


class CreateTopicsRequest(
    Request,
    api_key=ApiKey.CREATE_TOPICS,
    response=CreateTopicsResponse,
    versions="2-7",
    flexible="5+",
):
    """Creates topics, or validates the request only."""

    topics: list[CreatableTopic] = array(CreatableTopic)
    timeout_ms: int = int32(default=60000)
    validate_only: bool = boolean("1+")


class CreatePartitionsTopicResult(Struct):
    """The outcome for a topic."""

    name: str = string()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)


class CreatePartitionsResponse(Response, versions="0-3", flexible="2+"):
    """The outcome for each topic."""

    throttle_time_ms: int = int32()
    results: list[CreatePartitionsTopicResult] = array(CreatePartitionsTopicResult)


class CreatePartitionsAssignment(Struct):
    """Brokers of a new partition."""

    broker_ids: list[int] = array(int32)


class CreatePartitionsTopic(Struct):
    """Topic and its new number of partitions."""

    name: str = string(map_key=True)
    count: int = int32()
    assignments: list[CreatePartitionsAssignment] | None = array(
        CreatePartitionsAssignment, nullable="0+"
    )


class CreatePartitionsRequest(
    Request,
    api_key=ApiKey.CREATE_PARTITIONS,
    response=CreatePartitionsResponse,
    versions="0-3",
    flexible="2+",
):
    """Increases the number of partitions."""

    topics: list[CreatePartitionsTopic] = array(CreatePartitionsTopic)
    timeout_ms: int = int32()
    validate_only: bool = boolean()


class DeletableTopicResult(Struct):
    """The outcome for a topic."""

    name: str | None = string(nullable="6+", map_key=True)
    topic_id: bytes = uuid("6+", ignorable=True)
    error_code: int = int16()
    error_message: str | None = string("5+", nullable="5+", default=None, ignorable=True)


class DeleteTopicsResponse(Response, versions="1-6", flexible="4+"):
    """The outcome for each topic."""

    throttle_time_ms: int = int32("1+", ignorable=True)
    responses: list[DeletableTopicResult] = array(DeletableTopicResult)


class DeleteTopicState(Struct):
    """A topic by name or by id."""

    name: str | None = string("6+", nullable="6+", default=None)
    topic_id: bytes = uuid("6+")


class DeleteTopicsRequest(
    Request,
    api_key=ApiKey.DELETE_TOPICS,
    response=DeleteTopicsResponse,
    versions="1-6",
    flexible="4+",
):
    """Deletes topics."""

    topics: list[DeleteTopicState] = array(DeleteTopicState, "6+")
    topic_names: list[str] = array(string, "0-5", ignorable=True)
    timeout_ms: int = int32()
