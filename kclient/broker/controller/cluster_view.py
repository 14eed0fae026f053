"""State that decisions of the controller are made on, and the form of a decision.

Every planner of this package is a function of a `ClusterView`, a request and, where sessions
matter, the time. It changes nothing, but returns the records that make the change and the response
to send when they are committed.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

from kclient.broker.controller.partition_change_builder import (
    ChangeRules,
    PartitionChangeBuilder,
)
from kclient.broker.controller.partition_index import PartitionIndex, PartitionKey
from kclient.broker.controller.striped_replica_placer import is_usable
from kclient.broker.metadata.features import ELIGIBLE_LEADER_REPLICAS_VERSION
from kclient.broker.metadata.metadata_delta import MetadataDelta
from kclient.broker.metadata.metadata_image import (
    BROKER_RESOURCE,
    MIGRATING_DIRECTORY,
    BrokerRegistration,
    MetadataImage,
    PartitionRegistration,
    TopicImage,
)
from kclient.broker.metadata.metadata_version import MetadataVersion, finalized_version
from kclient.common.broker_errors import StaleBrokerEpochError
from kclient.protocol.messages.metadata_records import MetadataRecord

MIN_ISR_CONFIG = "min.insync.replicas"
UNCLEAN_CONFIG = "unclean.leader.election.enable"

ResponseT = TypeVar("ResponseT")


class ControllerResult(NamedTuple, Generic[ResponseT]):
    """Decision of the controller (Kafka: ControllerResult).

    Attributes:
        records: Records that make it; empty if nothing changes.
        response: Response to send when the records are committed.
        is_atomic: Whether all records must take effect together. Records of other decisions may
            be written in several batches.
    """

    records: Sequence[MetadataRecord]
    response: ResponseT
    is_atomic: bool = True


class ClusterView:
    """Latest image, uncommitted changes included, with its index and the static settings.

    Attributes:
        image: The image.
        index: Index of its partitions.
        defaults: Values of settings that no dynamic one overrides, by the topic's name of the
            setting, as strings.
    """

    def __init__(
        self, image: MetadataImage, index: PartitionIndex, defaults: Mapping[str, str]
    ) -> None:
        self.image = image
        self.index = index
        self.defaults = defaults

    @property
    def metadata_version(self) -> MetadataVersion:
        """Finalized level of metadata.version."""
        return finalized_version(self.image.features)

    @property
    def elr_enabled(self) -> bool:
        """Whether eligible leader replicas are recorded (KIP-966)."""
        features = self.image.features
        return features.get(ELIGIBLE_LEADER_REPLICAS_VERSION, 0) > 0

    def topic_setting(self, topic: str, name: str) -> str | None:
        """Return a setting of a topic: its own, the cluster's, or the default."""
        own = self.image.topic_config(topic).get(name)
        if own is None:
            own = self.image.config(BROKER_RESOURCE, "").get(name)
        return self.defaults.get(name) if own is None else own

    def min_isr(self, topic: str) -> int:
        """Return ``min.insync.replicas`` of a topic."""
        value = self.topic_setting(topic, MIN_ISR_CONFIG)
        return 1 if value is None else int(value)

    def unclean_enabled(self, topic: str) -> bool:
        """Return ``unclean.leader.election.enable`` of a topic."""
        return (self.topic_setting(topic, UNCLEAN_CONFIG) or "false").lower() == "true"

    def partition(self, key: PartitionKey) -> PartitionRegistration:
        """Return a partition that exists."""
        return self.topic(key).partitions[key[1]]

    def topic(self, key: PartitionKey) -> TopicImage:
        """Return the topic of a partition that exists."""
        return self.image.topics[self.image.topic_names[key[0]]]

    def is_active(self, broker: int) -> bool:
        """Return whether a broker is registered, unfenced and not shutting down."""
        registration = self.image.broker(broker)
        return registration is not None and registration.is_active

    def builder(
        self,
        key: PartitionKey,
        is_live: Callable[[int], bool] | None = None,
        directories: Mapping[int, bytes] | None = None,
    ) -> PartitionChangeBuilder:
        """Return a builder of changes of a partition.

        Args:
            key: The partition.
            is_live: Whether a broker may lead as far as its registration decides; `is_active` if
                None.
            directories: Directory of each replica after the change; the present ones if None.
        """
        partition = self.partition(key)
        directory_of = directories or dict(
            zip(partition.replicas, partition.directories, strict=False)
        )
        live = is_live or self.is_active

        def is_acceptable(replica: int) -> bool:
            registration = self.image.broker(replica)
            if registration is None or not live(replica):
                return False
            directory = directory_of.get(replica, MIGRATING_DIRECTORY)
            return registration.has_online_directory(directory)

        rules = ChangeRules(
            self.metadata_version,
            self.elr_enabled,
            self.min_isr(self.topic(key).name),
            self.default_directory,
        )
        return PartitionChangeBuilder(partition, key, rules, is_acceptable)

    def default_directory(self, broker: int) -> bytes:
        """Return the directory of a broker's new replicas."""
        registration = self.image.broker(broker)
        return MIGRATING_DIRECTORY if registration is None else registration.default_directory

    def usable_brokers(self) -> list[BrokerRegistration]:
        """Return the brokers that may receive new replicas, fenced ones included."""
        brokers = self.image.brokers
        return [broker for broker in brokers.values() if is_usable(broker)]

    def check_broker_epoch(self, broker: int, epoch: int) -> BrokerRegistration:
        """Return the registration of a broker that sent a request.

        Raises:
            StaleBrokerEpochError: The broker is not registered, or has another epoch.
        """
        registration = self.image.broker(broker)
        if registration is None:
            raise StaleBrokerEpochError(f"No broker registration found for broker id {broker}")
        if registration.epoch != epoch:
            raise StaleBrokerEpochError(
                f"Expected broker epoch {registration.epoch}, but got broker epoch {epoch}"
            )
        return registration

    def image_after(self, records: Sequence[MetadataRecord]) -> MetadataImage:
        """Return the image with records applied."""
        delta = MetadataDelta(self.image)
        for record in records:
            delta.replay(record)
        return delta.apply(self.image.offset + len(records))
