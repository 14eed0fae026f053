"""Random valid sequences of metadata records, with the image after each."""

from collections.abc import Callable
from random import Random

from hypothesis import strategies as st

from kclient.broker.metadata.metadata_delta import MetadataDelta
from kclient.broker.metadata.metadata_image import (
    BROKER_RESOURCE,
    TOPIC_RESOURCE,
    BrokerRegistration,
    MetadataImage,
    TopicImage,
)
from kclient.protocol.messages.metadata_records import (
    AccessControlEntryRecord,
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ClientQuotaRecord,
    ConfigRecord,
    ControllerEndpoint,
    ControllerFeature,
    DelegationTokenRecord,
    EntityData,
    FeatureLevelRecord,
    FenceBrokerRecord,
    MetadataRecord,
    NoOpRecord,
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

LEVEL = 30
BROKERS = (1, 2, 3, 4)


class History:
    """Records, each valid after the previous ones, with the image after all.

    Attributes:
        records: The records; the first sets metadata.version.
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        self._delta = MetadataDelta(MetadataImage())
        self._image = MetadataImage()
        self.records: list[MetadataRecord] = []
        self.add(FeatureLevelRecord(name="metadata.version", feature_level=LEVEL))

    @property
    def image(self) -> MetadataImage:
        return self._image

    def add(self, record: MetadataRecord) -> None:
        self._delta.replay(record)
        self.records.append(record)
        self._image = self._delta.apply(len(self.records) - 1)

    def step(self) -> None:
        """Add a random record."""
        record = self._random.choice(_STEPS)(self._image, self._random)
        if record is not None:
            self.add(record)


Step = Callable[[MetadataImage, Random], MetadataRecord | None]


def _id(random: Random) -> bytes:
    return bytes(14) + random.randrange(1000, 60_000).to_bytes(2)


def _subset(random: Random, values: tuple[int, ...]) -> list[int]:
    return [value for value in values if random.random() < 0.5]


def _topic_name(random: Random) -> str:
    return f"topic-{random.randrange(4)}"


def _any_topic(image: MetadataImage, random: Random) -> TopicImage | None:
    return random.choice(list(image.topics.values())) if image.topics else None


def _any_broker(image: MetadataImage, random: Random) -> BrokerRegistration | None:
    return random.choice(list(image.brokers.values())) if image.brokers else None


def _register_broker(image: MetadataImage, random: Random) -> MetadataRecord:
    directories = [_id(random) for _ in range(random.randrange(3))]
    return RegisterBrokerRecord(
        broker_id=random.choice(BROKERS),
        is_migrating_zk_broker=random.random() < 0.1,
        incarnation_id=_id(random),
        broker_epoch=image.offset + 1,
        end_points=[
            BrokerEndpoint(
                name=name, host="höst", port=random.randrange(65536), security_protocol=number
            )
            for number, name in enumerate(("A", "B")[: random.randrange(3)])
        ],
        features=[BrokerFeature(name="f", min_supported_version=1, max_supported_version=9)],
        rack=random.choice((None, "", "rack")),
        fenced=random.random() < 0.5,
        in_controlled_shutdown=random.random() < 0.2,
        log_dirs=directories,
        cordoned_log_dirs=directories[:1] or None,
    )


def _change_broker(image: MetadataImage, random: Random) -> MetadataRecord | None:
    broker = _any_broker(image, random)
    if broker is None:
        return None
    return random.choice(
        (
            FenceBrokerRecord(id=broker.id, epoch=broker.epoch),
            UnfenceBrokerRecord(id=broker.id, epoch=broker.epoch),
            UnregisterBrokerRecord(broker_id=broker.id, broker_epoch=broker.epoch),
            BrokerRegistrationChangeRecord(
                broker_id=broker.id,
                broker_epoch=broker.epoch,
                fenced=random.choice((-1, 0, 1)),
                in_controlled_shutdown=random.choice((0, 1)),
                log_dirs=[_id(random) for _ in range(random.randrange(3))],
                cordoned_log_dirs=random.choice((None, [], [_id(random)])),
            ),
        )
    )


def _controller(_image: MetadataImage, random: Random) -> MetadataRecord:
    number = random.randrange(3)
    if random.random() < 0.3:
        return UnregisterControllerRecord(controller_id=number)
    return RegisterControllerRecord(
        controller_id=number,
        incarnation_id=_id(random),
        zk_migration_ready=random.random() < 0.5,
        end_points=[ControllerEndpoint(name="C", host="c", port=number)],
        features=[ControllerFeature(name="f", max_supported_version=number)],
    )


def _topic(image: MetadataImage, random: Random) -> MetadataRecord | None:
    name, topic_id = _topic_name(random), _id(random)
    if name in image.topics or topic_id in image.topic_names:
        return None
    return TopicRecord(name=name, topic_id=topic_id)


def _partition(image: MetadataImage, random: Random) -> MetadataRecord | None:
    topic = _any_topic(image, random)
    if topic is None:
        return None
    replicas = random.sample(BROKERS, random.randrange(1, 4))
    return PartitionRecord(
        partition_id=len(topic.partitions),
        topic_id=topic.topic_id,
        replicas=replicas,
        isr=replicas[:1],
        removing_replicas=_subset(random, BROKERS),
        adding_replicas=_subset(random, BROKERS),
        leader=random.choice((-1, replicas[0])),
        leader_recovery_state=random.randrange(2),
        leader_epoch=random.randrange(9),
        partition_epoch=random.randrange(9),
        directories=[_id(random) for _ in replicas],
        eligible_leader_replicas=random.choice((None, [], replicas[1:])),
        last_known_elr=random.choice((None, replicas[:1])),
    )


def _change_partition(image: MetadataImage, random: Random) -> MetadataRecord | None:
    topic = _any_topic(image, random)
    if topic is None or not topic.partitions:
        return None
    replicas = random.choice((None, random.sample(BROKERS, 3)))
    return PartitionChangeRecord(
        partition_id=random.randrange(len(topic.partitions)),
        topic_id=topic.topic_id,
        isr=random.choice((None, _subset(random, BROKERS))),
        leader=random.choice((-2, -1, 1, 2)),
        replicas=replicas,
        removing_replicas=random.choice((None, _subset(random, BROKERS))),
        adding_replicas=random.choice((None, _subset(random, BROKERS))),
        leader_recovery_state=random.choice((-1, 0, 1)),
        directories=None if replicas is None else [_id(random) for _ in replicas],
        eligible_leader_replicas=random.choice((None, _subset(random, BROKERS))),
        last_known_elr=random.choice((None, _subset(random, BROKERS))),
    )


def _remove_topic(image: MetadataImage, random: Random) -> MetadataRecord | None:
    topic = _any_topic(image, random)
    return None if topic is None else RemoveTopicRecord(topic_id=topic.topic_id)


def _clear_elr(image: MetadataImage, random: Random) -> MetadataRecord:
    topic = _any_topic(image, random)
    return ClearElrRecord(topic_name="" if topic is None else random.choice(("", topic.name)))


def _config(_image: MetadataImage, random: Random) -> MetadataRecord:
    kind = random.choice((TOPIC_RESOURCE, BROKER_RESOURCE, 16, 32))
    return ConfigRecord(
        resource_type=kind,
        resource_name=_topic_name(random) if kind == TOPIC_RESOURCE else random.choice(("", "1")),
        name=random.choice(("retention.ms", "x")),
        value=random.choice((None, "", "1", "ü" * 100)),
    )


def _quota(_image: MetadataImage, random: Random) -> MetadataRecord:
    entity = [
        EntityData(entity_type=kind, entity_name=random.choice((None, "", "n")))
        for kind in random.sample(("user", "client-id"), random.randrange(1, 3))
    ]
    key = random.choice(("producer_byte_rate", "consumer_byte_rate"))
    return ClientQuotaRecord(
        entity=entity, key=key, value=random.random(), remove=random.random() < 0.4
    )


def _feature(_image: MetadataImage, random: Random) -> MetadataRecord:
    name = random.choice(("group.version", "share.version", "unknown.feature"))
    return FeatureLevelRecord(name=name, feature_level=random.randrange(3))


def _producer_ids(image: MetadataImage, random: Random) -> MetadataRecord:
    end = image.next_producer_id + random.choice((1, 1000))
    return ProducerIdsRecord(broker_id=1, broker_epoch=2, next_producer_id=end)


def _acl(image: MetadataImage, random: Random) -> MetadataRecord:
    if image.acls and random.random() < 0.4:
        return RemoveAccessControlEntryRecord(id=random.choice(list(image.acls)))
    return AccessControlEntryRecord(
        id=_id(random),
        resource_type=2,
        resource_name="t",
        pattern_type=3,
        principal="User:ü",
        host="*",
        operation=random.randrange(12),
        permission_type=random.randrange(2, 4),
    )


def _scram(_image: MetadataImage, random: Random) -> MetadataRecord:
    user, mechanism = random.choice(("u", "v")), random.choice((1, 2))
    if random.random() < 0.4:
        return RemoveUserScramCredentialRecord(name=user, mechanism=mechanism)
    return UserScramCredentialRecord(
        name=user,
        mechanism=mechanism,
        salt=_id(random),
        stored_key=_id(random),
        server_key=b"",
        iterations=4096,
    )


def _token(_image: MetadataImage, random: Random) -> MetadataRecord:
    token_id = random.choice(("a", "b"))
    if random.random() < 0.4:
        return RemoveDelegationTokenRecord(token_id=token_id)
    return DelegationTokenRecord(
        owner="User:a",
        requester="User:b",
        renewers=random.choice(([], ["User:c", "User:d"])),
        issue_timestamp=random.randrange(99),
        max_timestamp=2**62,
        expiration_timestamp=-1,
        token_id=token_id,
    )


def _other(_image: MetadataImage, random: Random) -> MetadataRecord:
    return random.choice(
        (NoOpRecord(), ZkMigrationStateRecord(zk_migration_state=random.randrange(5)))
    )


_STEPS: tuple[Step, ...] = (
    _register_broker,
    _change_broker,
    _controller,
    *(_topic, _partition, _partition, _change_partition, _change_partition, _remove_topic),
    _clear_elr,
    _config,
    _quota,
    _feature,
    _producer_ids,
    _acl,
    _scram,
    _token,
    _other,
)


@st.composite
def histories(draw: st.DrawFn, max_steps: int = 60) -> History:
    """Draw a history of at most so many records after the first."""
    history = History(Random(draw(st.integers(0, 2**32))))
    for _ in range(draw(st.integers(0, max_steps))):
        history.step()
    return history
