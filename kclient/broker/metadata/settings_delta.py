"""Replay of records of settings, features, quotas and producer ids."""

from collections.abc import Mapping
from typing import Generic, TypeVar

from kclient.broker.metadata.metadata_changes import MetadataChanges
from kclient.broker.metadata.metadata_image import (
    ConfigResource,
    MetadataImage,
    QuotaEntity,
)
from kclient.broker.metadata.metadata_version import METADATA_VERSION, MetadataVersion
from kclient.broker.metadata.shared_mapping import SharedMapping
from kclient.common.errors import KafkaError
from kclient.protocol.messages.metadata_records import (
    ClientQuotaRecord,
    ConfigRecord,
    FeatureLevelRecord,
    ProducerIdsRecord,
    ZkMigrationStateRecord,
)

_METADATA_VERSIONS = frozenset(map(int, MetadataVersion))

K = TypeVar("K")
V = TypeVar("V")


class _Groups(Generic[K, V]):
    """Values by name in groups; a group without values does not exist."""

    def __init__(self, base: Mapping[K, Mapping[str, V]]) -> None:
        self.groups: SharedMapping[K, Mapping[str, V]] = SharedMapping(base)
        self._changing: dict[K, dict[str, V]] = {}

    def set(self, group: K, name: str, value: V | None) -> None:
        values = self._changing.get(group)
        if values is None:
            values = self._changing[group] = dict(self.groups.get(group) or {})
        if value is None:
            values.pop(name, None)
        else:
            values[name] = value
        if values:
            self.groups.set(group, values)
        else:
            self.remove(group)

    def remove(self, group: K) -> None:
        self.groups.remove(group)
        self._changing.pop(group, None)

    def freeze(self) -> Mapping[K, Mapping[str, V]]:
        self._changing.clear()
        return self.groups.freeze()


class SettingsDelta:
    """Settings with records replayed onto them.

    Attributes:
        configs: Settings by resource.
        client_quotas: Quotas by entity.
        features: Finalized levels by feature.
        next_producer_id: First producer id that is not allocated.
        zk_migration_state: State of the migration from ZooKeeper.
    """

    def __init__(self, image: MetadataImage, changes: MetadataChanges) -> None:
        self._changes = changes
        self.configs: _Groups[ConfigResource, str] = _Groups(image.configs)
        self.client_quotas: _Groups[QuotaEntity, float] = _Groups(image.client_quotas)
        self.features: SharedMapping[str, int] = SharedMapping(image.features)
        self.next_producer_id = image.next_producer_id
        self.zk_migration_state = image.zk_migration_state

    def set_config(self, record: ConfigRecord) -> None:
        """Set a value of a resource, or remove it."""
        resource = (record.resource_type, record.resource_name)
        self.configs.set(resource, record.name, record.value)
        self._changes.changed_configs[resource] = None

    def remove_configs(self, resource: ConfigResource) -> None:
        """Remove all values of a resource that was deleted."""
        self.configs.remove(resource)
        self._changes.note_configs_removed(resource)

    def set_client_quota(self, record: ClientQuotaRecord) -> None:
        """Set a quota of an entity, or remove it."""
        parts = sorted(record.entity, key=lambda part: part.entity_type)
        entity = tuple((part.entity_type, part.entity_name) for part in parts)
        self.client_quotas.set(entity, record.key, None if record.remove else record.value)
        self._changes.changed_client_quotas[entity] = None

    def set_feature_level(self, record: FeatureLevelRecord) -> None:
        """Set the level of a feature; level 0 is none."""
        if record.name == METADATA_VERSION and record.feature_level not in _METADATA_VERSIONS:
            raise KafkaError(
                f"metadata log: metadata.version {record.feature_level} is unknown, expected "
                f"{min(MetadataVersion):d} to {max(MetadataVersion):d}"
            )
        if record.feature_level:
            self.features.set(record.name, record.feature_level)
        else:
            self.features.remove(record.name)
        self._changes.changed_features[record.name] = None

    def allocate_producer_ids(self, record: ProducerIdsRecord) -> None:
        """Move the end of the allocated producer ids, which must not be allocated again."""
        if record.next_producer_id <= self.next_producer_id:
            raise KafkaError(
                f"metadata log: got the next producer id {record.next_producer_id}, expected more "
                f"than {self.next_producer_id}"
            )
        self.next_producer_id = record.next_producer_id

    def set_zk_migration_state(self, record: ZkMigrationStateRecord) -> None:
        """Set the state of the migration from ZooKeeper."""
        self.zk_migration_state = record.zk_migration_state
