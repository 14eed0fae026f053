"""Replay of settings, features, quotas and producer ids."""

import pytest

from kclient.broker.metadata.metadata_delta import MetadataDelta
from kclient.broker.metadata.metadata_image import BROKER_RESOURCE, MetadataImage
from kclient.broker.metadata.settings_delta import SettingsDelta
from kclient.common.errors import KafkaError
from kclient.protocol.messages.metadata_records import (
    ClientQuotaRecord,
    ConfigRecord,
    EntityData,
    FeatureLevelRecord,
    MetadataRecord,
    ProducerIdsRecord,
    ZkMigrationStateRecord,
)


def delta_of(*records: MetadataRecord, image: MetadataImage | None = None) -> MetadataDelta:
    delta = MetadataDelta(image or MetadataImage())
    assert isinstance(delta.settings_delta, SettingsDelta)
    for record in records:
        delta.replay(record)
    return delta


def setting(name: str, value: str | None) -> ConfigRecord:
    return ConfigRecord(resource_type=BROKER_RESOURCE, resource_name="7", name=name, value=value)


def test_null_removes_a_setting_and_the_last_one_the_resource() -> None:
    image = delta_of(setting("a", "1"), setting("b", ""), setting("a", "2")).apply(1)
    assert image.config(BROKER_RESOURCE, "7") == {"a": "2", "b": ""}
    delta = delta_of(setting("a", None), image=image)
    assert list(delta.changed_configs) == [(BROKER_RESOURCE, "7")]
    assert delta.apply(2).config(BROKER_RESOURCE, "7") == {"b": ""}
    assert delta_of(setting("a", None), setting("b", None), image=image).apply(2).configs == {}
    assert image.config(BROKER_RESOURCE, "7") == {"a": "2", "b": ""}


def test_settings_of_a_resource_without_settings_are_new() -> None:
    delta = delta_of(setting("a", "1"), setting("a", None), setting("b", "2"))
    assert delta.apply(1).configs == {(BROKER_RESOURCE, "7"): {"b": "2"}}


def quota(
    key: str, value: float, *parts: tuple[str, str | None], remove: bool = False
) -> ClientQuotaRecord:
    entity = [EntityData(entity_type=kind, entity_name=name) for kind, name in parts]
    return ClientQuotaRecord(entity=entity, key=key, value=value, remove=remove)


def test_quotas_of_an_entity_in_any_order_of_its_parts() -> None:
    user, client = ("user", "u"), ("client-id", None)
    delta = delta_of(
        quota("producer_byte_rate", 1.5, user, client), quota("consumer_byte_rate", 2, client, user)
    )
    entity = (client, user)
    assert delta.apply(1).client_quotas == {
        entity: {"producer_byte_rate": 1.5, "consumer_byte_rate": 2.0}
    }
    assert list(delta.changed_client_quotas) == [entity]
    for key in ("producer_byte_rate", "consumer_byte_rate"):
        delta.replay(quota(key, 0, user, client, remove=True))
    assert delta.apply(2).client_quotas == {}


def test_feature_level_zero_is_none() -> None:
    level = FeatureLevelRecord(name="metadata.version", feature_level=25)
    other = FeatureLevelRecord(name="group.version", feature_level=1)
    image = delta_of(level, other).apply(1)
    assert image.features == {"metadata.version": 25, "group.version": 1}
    delta = delta_of(FeatureLevelRecord(name="group.version", feature_level=0), image=image)
    assert list(delta.changed_features) == ["group.version"]
    assert delta.apply(2).features == {"metadata.version": 25}


@pytest.mark.parametrize("end", [-1, 0, 999, 1000])
def test_producer_ids_are_not_allocated_again(end: int) -> None:
    delta = delta_of(ProducerIdsRecord(next_producer_id=1000))
    with pytest.raises(KafkaError, match="next producer id"):
        delta.replay(ProducerIdsRecord(next_producer_id=end))
    delta.replay(ProducerIdsRecord(next_producer_id=1001))
    assert delta.apply(1).next_producer_id == 1001


def test_state_of_the_migration_is_kept() -> None:
    assert delta_of(ZkMigrationStateRecord(zk_migration_state=4)).apply(1).zk_migration_state == 4


@pytest.mark.parametrize("level", [6, 32])
def test_unknown_metadata_version_is_refused(level: int) -> None:
    """The versions of later records depend on it."""
    with pytest.raises(KafkaError, match=f"metadata.version {level} is unknown"):
        delta_of(FeatureLevelRecord(name="metadata.version", feature_level=level))
