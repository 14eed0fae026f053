"""Automatic creation of topics."""

from collections.abc import Callable, Mapping, Sequence

from kclient.broker.metadata.metadata_image import CONSUMER_OFFSETS, TRANSACTION_STATE
from kclient.broker.server.broker_config import BrokerConfig
from kclient.broker.server.controller_channel import ControllerChannel, are_created
from kclient.common.broker_errors import (
    NONE,
    TopicExistsError,
    UnknownTopicOrPartitionError,
    code_of,
    error_of_code,
)
from kclient.common.errors import KafkaError
from kclient.protocol.messages.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

_EXISTS = code_of(TopicExistsError)


class AutoTopicCreationManager:
    """Creates topics on first use (Kafka: AutoTopicCreationManager)."""

    def __init__(self, config: BrokerConfig, controller: ControllerChannel) -> None:
        self._config = config
        self._controller = controller

    def create(
        self, names: Sequence[str], on_done: Callable[[dict[str, KafkaError]], None]
    ) -> None:
        """Create topics; `on_done` receives the error to respond with for each.

        As in Apache Kafka this is UNKNOWN_TOPIC_OR_PARTITION, which is retriable, if the topic was
        created, and the error of the creation otherwise.
        """

        def on_created(outcome: CreateTopicsResponse | KafkaError) -> None:
            if isinstance(outcome, KafkaError):
                on_done(dict.fromkeys(names, outcome))
            else:
                on_done({result.name: _error(result) for result in outcome.topics})

        request = CreateTopicsRequest(topics=[self._topic(name) for name in names], timeout_ms=0)
        self._controller.change(request, on_created, are_created)

    def _topic(self, name: str) -> CreatableTopic:
        config = self._config
        if name == CONSUMER_OFFSETS:
            return _internal(
                name,
                config.offsets_topic_num_partitions,
                config.offsets_topic_replication_factor,
                {
                    "cleanup.policy": "compact",
                    "compression.type": "producer",
                    "segment.bytes": config.offsets_topic_segment_bytes,
                },
            )
        if name == TRANSACTION_STATE:
            return _internal(
                name,
                config.transaction_state_log_num_partitions,
                config.transaction_state_log_replication_factor,
                {
                    "cleanup.policy": "compact",
                    "compression.type": "uncompressed",
                    "min.insync.replicas": config.transaction_state_log_min_isr,
                    "segment.bytes": config.transaction_state_log_segment_bytes,
                    "unclean.leader.election.enable": "false",
                },
            )
        return CreatableTopic(name=name, num_partitions=-1, replication_factor=-1)


def _internal(
    name: str, partitions: int, replicas: int, configs: Mapping[str, object]
) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        configs=[
            CreatableTopicConfig(name=key, value=str(value)) for key, value in configs.items()
        ],
    )


def _error(result: CreatableTopicResult) -> KafkaError:
    # A concurrent request may have created the topic.
    if result.error_code in (NONE, _EXISTS):
        return UnknownTopicOrPartitionError(f"Topic {result.name} is being created")
    return error_of_code(result.error_code, result.error_message)
