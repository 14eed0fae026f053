"""Changes between two metadata images."""

from collections.abc import Callable
from typing import Any

from kclient.broker.metadata.cluster_delta import ClusterDelta
from kclient.broker.metadata.metadata_changes import MetadataChanges
from kclient.broker.metadata.metadata_image import TOPIC_RESOURCE, MetadataImage
from kclient.broker.metadata.security_delta import SecurityDelta
from kclient.broker.metadata.settings_delta import SettingsDelta
from kclient.broker.metadata.topics_delta import TopicsDelta
from kclient.protocol.messages.metadata_records import (
    AccessControlEntryRecord,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    UnregisterControllerRecord,
    UserScramCredentialRecord,
    ZkMigrationStateRecord,
)


class MetadataDelta(MetadataChanges):
    """An image with records replayed onto it (Kafka: MetadataDelta).

    What the records leave unchanged is shared with the image.

    Attributes:
        image: The image before the changes.
        topics_delta: Topics and partitions.
        cluster_delta: Brokers and controllers.
        settings_delta: Settings, features, quotas and producer ids.
        security_delta: Access rules and credentials.
    """

    def __init__(self, image: MetadataImage) -> None:
        super().__init__()
        self.image = image
        self.topics_delta = TopicsDelta(image, self)
        self.cluster_delta = ClusterDelta(image, self)
        self.settings_delta = SettingsDelta(image, self)
        self.security_delta = SecurityDelta(image, self)

    @classmethod
    def between(cls, old: MetadataImage, new: MetadataImage) -> "MetadataDelta":
        """Return the changes from an image to another, of which a snapshot was loaded."""
        delta = cls(new)
        delta.image = old
        delta.add_differences(old, new)
        return delta

    def replay(self, record: MetadataRecord) -> None:
        """Apply one record; a record that changes nothing in an image is ignored.

        Raises:
            KafkaError: The record contradicts the image: it refers to an object that does not
                exist or has another epoch, or is not in order.
        """
        action = _ACTIONS.get(type(record))
        if action is not None:
            action(self, record)

    def apply(self, offset: int, epoch: int = -1, timestamp_ms: int = -1) -> MetadataImage:
        """Return the image with the changes applied.

        Args:
            offset: Offset of the last record replayed.
            epoch: Leader epoch of that record.
            timestamp_ms: Time of its batch.
        """
        topics, cluster = self.topics_delta, self.cluster_delta
        settings, security = self.settings_delta, self.security_delta
        topics.freeze()
        return MetadataImage(
            offset=offset,
            epoch=epoch,
            timestamp_ms=timestamp_ms,
            topics=topics.topics.freeze(),
            topic_names=topics.topic_names.freeze(),
            configs=settings.configs.freeze(),
            brokers=cluster.brokers.freeze(),
            features=settings.features.freeze(),
            next_producer_id=settings.next_producer_id,
            controllers=cluster.controllers.freeze(),
            client_quotas=settings.client_quotas.freeze(),
            acls=security.acls.freeze(),
            scram=security.scram.freeze(),
            delegation_tokens=security.delegation_tokens.freeze(),
            zk_migration_state=settings.zk_migration_state,
        )

    def remove_topic(self, record: RemoveTopicRecord) -> None:
        """Remove a topic with its settings."""
        topic = self.topics_delta.remove_topic(record)
        self.settings_delta.remove_configs((TOPIC_RESOURCE, topic.name))


Action = Callable[[MetadataDelta, Any], None]


def _topics(method: Callable[[TopicsDelta, Any], None]) -> Action:
    return lambda delta, record: method(delta.topics_delta, record)


def _cluster(method: Callable[[ClusterDelta, Any], None]) -> Action:
    return lambda delta, record: method(delta.cluster_delta, record)


def _settings(method: Callable[[SettingsDelta, Any], None]) -> Action:
    return lambda delta, record: method(delta.settings_delta, record)


def _security(method: Callable[[SecurityDelta, Any], None]) -> Action:
    return lambda delta, record: method(delta.security_delta, record)


# Without NoOpRecord, and without those of transactions, which MetadataLoader replays.
_ACTIONS: dict[type[MetadataRecord], Action] = {
    RegisterBrokerRecord: _cluster(ClusterDelta.register_broker),
    UnregisterBrokerRecord: _cluster(ClusterDelta.unregister_broker),
    BrokerRegistrationChangeRecord: _cluster(ClusterDelta.change_broker),
    FenceBrokerRecord: _cluster(ClusterDelta.fence_broker),
    UnfenceBrokerRecord: _cluster(ClusterDelta.unfence_broker),
    RegisterControllerRecord: _cluster(ClusterDelta.register_controller),
    UnregisterControllerRecord: _cluster(ClusterDelta.unregister_controller),
    TopicRecord: _topics(TopicsDelta.add_topic),
    PartitionRecord: _topics(TopicsDelta.add_partition),
    PartitionChangeRecord: _topics(TopicsDelta.change_partition),
    RemoveTopicRecord: MetadataDelta.remove_topic,
    ClearElrRecord: _topics(TopicsDelta.clear_elr),
    ConfigRecord: _settings(SettingsDelta.set_config),
    ClientQuotaRecord: _settings(SettingsDelta.set_client_quota),
    FeatureLevelRecord: _settings(SettingsDelta.set_feature_level),
    ProducerIdsRecord: _settings(SettingsDelta.allocate_producer_ids),
    ZkMigrationStateRecord: _settings(SettingsDelta.set_zk_migration_state),
    AccessControlEntryRecord: _security(SecurityDelta.add_acl),
    RemoveAccessControlEntryRecord: _security(SecurityDelta.remove_acl),
    UserScramCredentialRecord: _security(SecurityDelta.set_scram),
    RemoveUserScramCredentialRecord: _security(SecurityDelta.remove_scram),
    DelegationTokenRecord: _security(SecurityDelta.set_delegation_token),
    RemoveDelegationTokenRecord: _security(SecurityDelta.remove_delegation_token),
}
