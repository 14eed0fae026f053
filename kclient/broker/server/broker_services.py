"""Components of a broker that the request handlers use."""

from dataclasses import dataclass

from kclient.broker.controller.quorum_controller import QuorumController
from kclient.broker.coordinator.group.group_coordinator import GroupCoordinator
from kclient.broker.replication.replica_manager import ReplicaManager
from kclient.broker.server.auto_topic_creation_manager import AutoTopicCreationManager
from kclient.broker.server.broker_config import BrokerConfig
from kclient.broker.server.config_helper import ConfigHelper
from kclient.broker.server.producer_id_manager import ProducerIdManager
from kclient.broker.server.request_parser import ApiVersionManager
from kclient.common.runtime import Runtime


@dataclass(frozen=True, slots=True)
class BrokerServices:
    """Components of one broker, for its handlers.

    Attributes:
        config: The broker's settings.
        runtime: Clock and randomness.
        cluster_id: The cluster's id, as text.
        controller: Changes cluster metadata; its image is the current state.
        replica_manager: Reads and writes records.
        groups: Coordinator of consumer groups.
        api_versions: APIs and versions served.
        topic_creation: Automatic creation of topics.
        configs: Descriptions of settings.
        producer_ids: Allocation of producer ids.
    """

    config: BrokerConfig
    runtime: Runtime
    cluster_id: str
    controller: QuorumController
    replica_manager: ReplicaManager
    groups: GroupCoordinator
    api_versions: ApiVersionManager
    topic_creation: AutoTopicCreationManager
    configs: ConfigHelper
    producer_ids: ProducerIdManager
