"""State that decisions are made on."""

from typing import Any

import pytest

from kclient.broker.controller.cluster_view import ClusterView
from kclient.broker.controller.partition_index import PartitionIndex
from kclient.broker.metadata.metadata_image import (
    MIGRATING_DIRECTORY,
    BrokerRegistration,
    MetadataImage,
)
from kclient.common.broker_errors import StaleBrokerEpochError
from kclient.protocol.messages.metadata_records import NoOpRecord


def view(defaults: dict[str, str] | None = None, **fields: Any) -> ClusterView:
    image = MetadataImage(**fields)
    return ClusterView(image, PartitionIndex(image), defaults or {})


def test_settings_of_topic_cluster_and_default() -> None:
    name = "min.insync.replicas"
    assert view().min_isr("t") == 1
    assert view({name: "2"}).min_isr("t") == 2
    cluster = {(4, ""): {name: "3"}}
    assert view({name: "2"}, configs=cluster).min_isr("t") == 3
    own = {(2, "t"): {name: "4"}}
    assert view({name: "2"}, configs=cluster | own).min_isr("t") == 4
    assert view({name: "2"}, configs=cluster | own).min_isr("u") == 3
    unclean = "unclean.leader.election.enable"
    assert not view().unclean_enabled("t")
    assert view({unclean: "TRUE"}).unclean_enabled("t")


def test_features() -> None:
    assert view().metadata_version == 7
    assert not view().elr_enabled
    features = {"metadata.version": 25, "eligible.leader.replicas.version": 1}
    assert view(features=features).metadata_version == 25
    assert view(features=features).elr_enabled


def test_brokers() -> None:
    leaving = BrokerRegistration(
        1, 5, bytes(16), (), None, fenced=False, in_controlled_shutdown=True
    )
    state = view(brokers={1: leaving})
    assert not state.is_active(1)
    assert not state.is_active(2)
    assert state.usable_brokers() == []
    assert state.check_broker_epoch(1, 5) is leaving
    assert state.default_directory(2) == MIGRATING_DIRECTORY
    for broker, epoch in ((1, 4), (2, 5)):
        with pytest.raises(StaleBrokerEpochError):
            state.check_broker_epoch(broker, epoch)


def test_image_after_records() -> None:
    assert view(offset=4).image_after([NoOpRecord(), NoOpRecord()]).offset == 6
