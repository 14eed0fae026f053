"""Sessions of brokers."""

import pytest

from kclient.broker.controller.broker_heartbeat_manager import BrokerHeartbeatManager
from kclient.broker.metadata.metadata_image import BrokerRegistration, MetadataImage

OTHER = (9, bytes(16))
"""Process of a node without a broker."""


def image(
    *brokers: int, fenced: tuple[int, ...] = (), leaving: tuple[int, ...] = ()
) -> MetadataImage:
    return MetadataImage(
        offset=50,
        brokers={
            each: BrokerRegistration(
                each,
                10,
                bytes(16),
                (),
                None,
                each in fenced,
                in_controlled_shutdown=each in leaving,
            )
            for each in brokers
        },
    )


def test_new_active_controller_starts_all_sessions() -> None:
    manager = BrokerHeartbeatManager(9000)
    state = image(1, 2, 3, fenced=(3,))
    manager.start(state, 1000, OTHER)
    assert manager.stale_broker(state, 9999) is None
    manager.touch(2, 10, 5, 2000)
    assert manager.next_deadline_ms(state) == 10_000
    assert manager.stale_broker(state, 10_000) == 1
    assert manager.stale_broker(image(1, 2, fenced=(1,)), 11_000) == 2
    assert manager.next_deadline_ms(image(3, fenced=(3,))) is None


@pytest.mark.parametrize("incarnation", [bytes(16), b"x" * 16])
def test_earlier_life_of_the_own_process_has_no_session(incarnation: bytes) -> None:
    manager = BrokerHeartbeatManager(9000)
    manager.start(image(1, 2), 1000, (1, incarnation))
    assert manager.has_valid_session(1, 10, 1001) is (incarnation == bytes(16))
    assert manager.has_valid_session(2, 10, 1001)


def test_session_belongs_to_an_epoch() -> None:
    manager = BrokerHeartbeatManager(9000)
    manager.touch(1, 10, 5, 0)
    assert manager.has_valid_session(1, 10, 8999)
    assert not manager.has_valid_session(1, 10, 9000)
    assert not manager.has_valid_session(1, 11, 1)
    assert not manager.has_valid_session(2, 10, 1)


def test_shutdown_waits_for_the_active_brokers() -> None:
    manager = BrokerHeartbeatManager()
    state = image(1, 2, 3, leaving=(1,))
    manager.start(state, 0, OTHER)
    assert manager.lowest_active_offset(state) == -1
    manager.start_shutdown(1, 10, 30, 0)
    manager.touch(2, 10, 40, 0)
    assert not manager.may_stop(state, 1)
    manager.touch(3, 10, 30, 0)
    assert manager.may_stop(state, 1)
    assert manager.lowest_active_offset(image(1, leaving=(1,))) > 1 << 60


def test_shutdown_that_another_controller_started() -> None:
    manager = BrokerHeartbeatManager()
    state = image(1, 2, leaving=(1,))
    manager.start(state, 0, OTHER)
    manager.touch(2, 10, 49, 0)
    assert not manager.may_stop(state, 1)
    manager.touch(2, 10, 50, 0)
    assert manager.may_stop(state, 1)
