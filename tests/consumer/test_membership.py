"""Fetching with a membership that is not of the classic protocol."""

import pytest

from kclient.common.errors import KafkaError
from kclient.common.waiting import Steps
from kclient.consumer import ConsumerGroupMetadata, group
from kclient.consumer.coordinator_finder import CoordinatorFinder
from kclient.consumer.membership import MemberEpoch
from kclient.consumer.reconciliation import Reconciliation
from kclient.consumer.request_future import RequestFuture
from kclient.consumer.subscription_state import SubscriptionState
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.messages.committed_offsets import OffsetCommitRequest
from tests.consumer.conftest import ORDERS_0, ConsumerWorld, offsets


class FakeMembership:
    """Assigns orders-0 in its first step, without a request."""

    def __init__(self, finder: CoordinatorFinder, subscriptions: SubscriptionState) -> None:
        self.subscriptions = subscriptions
        self.group_id = finder.group_id
        self.blocked = False
        self.left = ""

    def step(self, reconciliation: Reconciliation, now_ms: float) -> Steps[float]:
        if not self.subscriptions.assigned:
            reconciliation.assign([ORDERS_0], now_ms)
            yield from reconciliation.report_assigned()
        return 1000.0

    def background_step(self, now_ms: float) -> float:
        return 1000.0

    def awaits_response(self) -> bool:
        return False

    def holds_back(self) -> bool:
        return self.blocked

    def subscription_changed(self, metadata_version: int) -> None:
        self.left = ""

    def owns_partitions(self) -> bool:
        return True

    def leave(self, reason: str) -> RequestFuture[None]:
        self.left = reason
        return RequestFuture.of(None)

    def metadata(self) -> ConsumerGroupMetadata:
        return ConsumerGroupMetadata(self.group_id, 7, "fake")

    def is_stable(self) -> bool:
        return not self.blocked

    def commit_epoch(self) -> MemberEpoch:
        return MemberEpoch("fake", 7)

    def commit_failed(self, error: KafkaError, sent: MemberEpoch) -> KafkaError:
        return error


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> list[FakeMembership]:
    """Replace the classic membership; return the memberships that are created."""
    created: list[FakeMembership] = []

    def create(
        _config: object,
        _runtime: object,
        _network: object,
        finder: CoordinatorFinder,
        subscriptions: SubscriptionState,
        *_: object,
    ) -> FakeMembership:
        created.append(FakeMembership(finder, subscriptions))
        return created[-1]

    monkeypatch.setattr(group, "ClassicMembership", create)
    return created


def test_records_are_fetched_without_group_requests(
    world: ConsumerWorld, fakes: list[FakeMembership]
) -> None:
    world.fill(3, 4)
    consumer = world.consumer(group_id="g", enable_auto_commit=False)
    consumer.subscribe("orders")
    assert offsets(world.read(consumer, 7)) == list(range(7))
    assert consumer.assignment() == {ORDERS_0}
    assert world.broker.group.joins == []
    consumer.close()
    assert fakes[0].left == "the consumer is being closed"


def test_no_records_are_returned_while_the_membership_holds_back(
    world: ConsumerWorld, fakes: list[FakeMembership]
) -> None:
    world.fill(3)
    consumer = world.consumer(group_id="g", enable_auto_commit=False)
    consumer.subscribe("orders")
    fakes[0].blocked = True
    assert not consumer.poll(1.0)
    fakes[0].blocked = False
    assert offsets(world.read(consumer, 3)) == [0, 1, 2]


def test_commits_carry_member_id_and_epoch(
    world: ConsumerWorld, fakes: list[FakeMembership]
) -> None:
    world.fill(2)
    consumer = world.consumer(group_id="g", enable_auto_commit=False)
    consumer.subscribe("orders")
    world.read(consumer, 2)
    sent: list[tuple[str, int]] = []

    def respond(_header: object, request: object) -> None:
        assert isinstance(request, OffsetCommitRequest)
        sent.append((request.member_id, request.generation_id_or_member_epoch))

    world.broker.responses[ApiKey.OFFSET_COMMIT] = respond
    consumer.commit_async()
    world.poll_until(consumer, lambda: bool(sent))
    assert sent[0] == ("fake", 7)
    assert consumer.group_metadata() == ConsumerGroupMetadata("g", 7, "fake")
    assert len(fakes) == 1
