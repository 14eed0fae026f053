"""Replay of brokers and controllers."""

import pytest

from kclient.broker.metadata.cluster_delta import ClusterDelta
from kclient.broker.metadata.metadata_delta import MetadataDelta
from kclient.broker.metadata.metadata_image import (
    BrokerRegistration,
    ControllerRegistration,
    MetadataImage,
)
from kclient.common.errors import KafkaError
from kclient.network.endpoint import Endpoint, SecurityProtocol
from kclient.protocol.messages.metadata_records import (
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    ControllerEndpoint,
    ControllerFeature,
    FenceBrokerRecord,
    MetadataRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    UnregisterControllerRecord,
)

D1, D2 = b"\1" * 16, b"\2" * 16
REGISTER = RegisterBrokerRecord(
    broker_id=1,
    is_migrating_zk_broker=True,
    incarnation_id=b"\7" * 16,
    broker_epoch=5,
    end_points=[
        BrokerEndpoint(name="A", host="a", port=1),
        BrokerEndpoint(name="B", host="b", port=2, security_protocol=3),
    ],
    features=[BrokerFeature(name="f", min_supported_version=1, max_supported_version=2)],
    rack="r",
    fenced=True,
    log_dirs=[D1, D2],
    cordoned_log_dirs=[D2],
)


def brokers_after(*records: MetadataRecord) -> dict[int, BrokerRegistration]:
    delta = MetadataDelta(MetadataImage())
    for record in (REGISTER, *records):
        delta.replay(record)
    assert isinstance(delta.cluster_delta, ClusterDelta)
    assert set(delta.changed_brokers) == {1}
    return dict(delta.apply(9).brokers)


def after(change: MetadataRecord) -> BrokerRegistration:
    return brokers_after(change)[1]


REGISTERED = brokers_after()[1]


def test_broker_has_everything_of_its_record() -> None:
    expected = BrokerRegistration(
        id=1,
        epoch=5,
        incarnation_id=b"\7" * 16,
        endpoints=(Endpoint("A", "a", 1), Endpoint("B", "b", 2, SecurityProtocol.SASL_SSL)),
        rack="r",
        fenced=True,
        in_controlled_shutdown=False,
        directories=(D1, D2),
        cordoned_directories=(D2,),
        features={"f": (1, 2)},
        is_migrating_zk_broker=True,
    )
    assert expected == REGISTERED


def change(
    *,
    fenced: int = 0,
    shutdown: int = 0,
    dirs: tuple[bytes, ...] = (),
    cordoned: list[bytes] | None = None,
) -> BrokerRegistrationChangeRecord:
    return BrokerRegistrationChangeRecord(
        broker_id=1,
        broker_epoch=5,
        fenced=fenced,
        in_controlled_shutdown=shutdown,
        log_dirs=list(dirs),
        cordoned_log_dirs=cordoned,
    )


def test_change_keeps_what_it_does_not_name() -> None:
    assert after(change()) == REGISTERED
    assert after(change(fenced=-1)) == REGISTERED._replace(fenced=False)
    assert after(change(shutdown=1)) == REGISTERED._replace(in_controlled_shutdown=True)
    assert after(change(dirs=(D1,))) == REGISTERED._replace(directories=(D1,))
    assert after(change(cordoned=[])) == REGISTERED._replace(cordoned_directories=())
    both = brokers_after(change(fenced=-1), change(fenced=1, shutdown=1))[1]
    assert both == REGISTERED._replace(in_controlled_shutdown=True)


def test_old_records_fence_and_unfence() -> None:
    assert after(UnfenceBrokerRecord(id=1, epoch=5)) == REGISTERED._replace(fenced=False)
    unfenced = brokers_after(UnfenceBrokerRecord(id=1, epoch=5), FenceBrokerRecord(id=1, epoch=5))
    assert unfenced == {1: REGISTERED}


def test_another_registration_replaces_the_broker() -> None:
    again = RegisterBrokerRecord(broker_id=1, broker_epoch=8, rack=None, fenced=False)
    assert after(again) == BrokerRegistration(1, 8, bytes(16), (), None, fenced=False)
    assert not brokers_after(UnregisterBrokerRecord(broker_id=1, broker_epoch=5))


@pytest.mark.parametrize(
    "record",
    [
        BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=4),
        BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=5),
        BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=5, fenced=2),
        BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=5, in_controlled_shutdown=-1),
        FenceBrokerRecord(id=1, epoch=6),
        UnfenceBrokerRecord(id=1, epoch=6),
        UnregisterBrokerRecord(broker_id=1, broker_epoch=6),
        UnregisterBrokerRecord(broker_id=3, broker_epoch=5),
    ],
)
def test_other_epochs_and_unknown_changes_are_refused(record: MetadataRecord) -> None:
    with pytest.raises(KafkaError, match="metadata log"):
        brokers_after(record)


def test_controllers_are_replaced_by_id() -> None:
    delta = MetadataDelta(MetadataImage())
    delta.replay(RegisterControllerRecord(controller_id=3))
    delta.replay(
        RegisterControllerRecord(
            controller_id=3,
            incarnation_id=D1,
            zk_migration_ready=True,
            end_points=[ControllerEndpoint(name="C", host="c", port=3)],
            features=[ControllerFeature(name="g", max_supported_version=4)],
        )
    )
    assert delta.apply(1).controllers == {
        3: ControllerRegistration(
            3, D1, (Endpoint("C", "c", 3),), {"g": (0, 4)}, zk_migration_ready=True
        )
    }
    assert list(delta.changed_controllers) == [3]
    delta.replay(UnregisterControllerRecord(controller_id=3))
    delta.replay(UnregisterControllerRecord(controller_id=4))
    assert delta.apply(2).controllers == {}
