"""Names of the objects that differ between two metadata images."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

from kclient.broker.metadata.metadata_image import (
    ConfigResource,
    MetadataImage,
    QuotaEntity,
    ScramUser,
    TopicImage,
)

K = TypeVar("K")
V = TypeVar("V")


class MetadataChanges:
    """Objects that changed; the dictionaries without values are sets in the order of the log.

    An object of these may be equal to the old one, or not exist any more: the new image decides.

    Attributes:
        created_topics: Names of created topics.
        deleted_topics: Deleted topics; a topic created again has another id.
        changed_topics: Names of topics whose partitions changed.
        changed_partitions: Numbers of new and changed partitions by name of the topic, which is a
            created or a changed one.
        changed_configs: Resources whose settings changed, but for those of deleted topics.
        changed_brokers: Ids of brokers that were registered, changed or unregistered.
        changed_controllers: Ids of such controllers.
        changed_features: Names of features whose level changed.
        changed_client_quotas: Entities whose quotas changed.
        changed_scram: Mechanisms and users whose credential changed.
        changed_acls: Ids of added and removed access rules.
        changed_delegation_tokens: Ids of added, renewed and removed delegation tokens.
    """

    def __init__(self) -> None:
        self.created_topics: dict[str, None] = {}
        self.deleted_topics: list[TopicImage] = []
        self.changed_topics: dict[str, None] = {}
        self.changed_partitions: dict[str, dict[int, None]] = {}
        self.changed_configs: dict[ConfigResource, None] = {}
        self.changed_brokers: dict[int, None] = {}
        self.changed_controllers: dict[int, None] = {}
        self.changed_features: dict[str, None] = {}
        self.changed_client_quotas: dict[QuotaEntity, None] = {}
        self.changed_scram: dict[ScramUser, None] = {}
        self.changed_acls: dict[bytes, None] = {}
        self.changed_delegation_tokens: dict[str, None] = {}

    def note_topic_deleted(self, topic: TopicImage) -> None:
        """Add a deleted topic, whose earlier changes are of no interest any more."""
        self.created_topics.pop(topic.name, None)
        self.changed_topics.pop(topic.name, None)
        self.changed_partitions.pop(topic.name, None)
        self.deleted_topics.append(topic)

    def note_partition_changed(self, topic: str, number: int) -> None:
        """Add a new or changed partition."""
        if topic not in self.created_topics:
            self.changed_topics[topic] = None
        self.changed_partitions.setdefault(topic, {})[number] = None

    def note_configs_removed(self, resource: ConfigResource) -> None:
        """Discard the changes of a resource that does not exist any more."""
        self.changed_configs.pop(resource, None)

    def add_differences(self, old: MetadataImage, new: MetadataImage) -> None:
        """Add everything that differs between two images."""
        self._add_topics(old, new)
        for changed, before, after in (
            (self.changed_configs, old.configs, new.configs),
            (self.changed_brokers, old.brokers, new.brokers),
            (self.changed_controllers, old.controllers, new.controllers),
            (self.changed_features, old.features, new.features),
            (self.changed_client_quotas, old.client_quotas, new.client_quotas),
            (self.changed_scram, old.scram, new.scram),
            (self.changed_acls, old.acls, new.acls),
            (self.changed_delegation_tokens, old.delegation_tokens, new.delegation_tokens),
        ):
            _add(changed, _differing(before, after))

    def _add_topics(self, old: MetadataImage, new: MetadataImage) -> None:
        for name in _differing(old.topics, new.topics):
            before, after = old.topic(name), new.topic(name)
            if before is not None and (after is None or after.topic_id != before.topic_id):
                self.note_topic_deleted(before)
                before = None
            if after is None:
                continue
            (self.created_topics if before is None else self.changed_topics)[name] = None
            known = () if before is None else before.partitions
            self.changed_partitions[name] = {
                number: None
                for number, partition in enumerate(after.partitions)
                if number >= len(known) or known[number] != partition
            }


def _add(target: dict[K, None], names: Iterable[K]) -> None:
    target.update(dict.fromkeys(names))


def _differing(old: Mapping[K, V], new: Mapping[K, V]) -> Iterator[K]:
    """Yield the keys whose values differ, those of removed values first."""
    if old is new:
        return
    for key in old:
        if key not in new:
            yield key
    for key, value in new.items():
        if key not in old or old[key] != value:
            yield key
