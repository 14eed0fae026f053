"""Automatic creation of topics."""

from kclient.broker.controller.metadata_image import CONSUMER_OFFSETS
from kclient.broker.controller.quorum_controller import QuorumController
from kclient.broker.controller.topic_plans import TopicRequest
from kclient.broker.server.broker_config import BrokerConfig
from kclient.common.broker_errors import TopicExistsError, UnknownTopicOrPartitionError
from kclient.common.errors import KafkaError


class AutoTopicCreationManager:
    """Creates topics on first use (Kafka: AutoTopicCreationManager)."""

    def __init__(self, config: BrokerConfig, controller: QuorumController) -> None:
        self._config = config
        self._controller = controller

    def create(self, name: str) -> KafkaError:
        """Create a topic and return the error to respond with.

        As in Apache Kafka this is UNKNOWN_TOPIC_OR_PARTITION, which is retriable, if the topic was
        created, and the error of the creation otherwise.
        """
        try:
            self._controller.create_topic(self._request(name))
        except TopicExistsError:
            pass  # created by a concurrent request
        except KafkaError as error:
            return error
        return UnknownTopicOrPartitionError(f"Topic {name} is being created")

    def _request(self, name: str) -> TopicRequest:
        if name != CONSUMER_OFFSETS:
            return TopicRequest(name)
        return TopicRequest(
            name,
            num_partitions=self._config["offsets.topic.num.partitions"],
            replication_factor=self._config["offsets.topic.replication.factor"],
            configs={
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": str(self._config["offsets.topic.segment.bytes"]),
            },
        )
