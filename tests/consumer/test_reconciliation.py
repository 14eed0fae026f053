"""Changes of a member's assignment, and the callbacks between them."""

import pytest

from kclient.common.errors import InvalidTypeError
from kclient.common.types import OffsetAndMetadata, TopicPartition
from kclient.common.waiting import Steps, perform
from kclient.consumer.rebalance_listener import RebalanceListener
from kclient.consumer.topic_partition_state import FetchPosition
from tests.consumer.conftest import ORDERS_0, ORDERS_1, ConsumerWorld, Diary, member

ORDERS_2 = TopicPartition("orders", 2)


class Reconciling:
    """A reconciliation without a group protocol."""

    def __init__(self, world: ConsumerWorld) -> None:
        self.clock = world.clock
        core = world.core(group_id="g")
        assert core.group is not None
        self.subscriptions, self.reconciliation = core.subscriptions, core.group.reconciliation
        self.commits = core.group.commits
        self.events: list[tuple[str, list[TopicPartition]]] = []
        self.error: BaseException | None = None
        listener = RebalanceListener(
            lambda added: self._note("assigned", added),
            lambda revoked: self._note("revoked", revoked),
            lambda lost: self._note("lost", lost),
        )
        self.subscriptions.subscribe(["orders"], listener)

    def _note(self, event: str, partitions: list[TopicPartition]) -> None:
        self.events.append((event, partitions))
        error, self.error = self.error, None
        if error is not None:
            raise error

    def run(self, steps: Steps[object]) -> object:
        return perform(steps, self.clock)

    def assign(self, *partitions: TopicPartition) -> None:
        self.reconciliation.assign(partitions, self.clock.now_ms)
        self.run(self.reconciliation.report_assigned())

    def begin(self, *kept: TopicPartition) -> None:
        self.reconciliation.begin_revoking(kept, self.clock.now_ms, can_commit=True)

    def revoke(self, *, are_lost: bool = False) -> object:
        return self.run(self.reconciliation.revoke(self.clock.now_ms, are_lost=are_lost))

    @property
    def assigned(self) -> list[TopicPartition]:
        return list(self.subscriptions.assigned)


@pytest.fixture
def reconciling(world: ConsumerWorld) -> Reconciling:
    return Reconciling(world)


def test_only_the_difference_changes(reconciling: Reconciling) -> None:
    reconciling.assign(ORDERS_0, ORDERS_1)
    kept = reconciling.subscriptions.state(ORDERS_1)
    reconciling.begin(ORDERS_1, ORDERS_2)
    assert reconciling.revoke() == 0
    assert reconciling.assigned == [ORDERS_1]
    reconciling.assign(ORDERS_1, ORDERS_2)
    assert reconciling.assigned == [ORDERS_1, ORDERS_2]
    assert reconciling.subscriptions.state(ORDERS_1) is kept
    assert reconciling.subscriptions.given_up == {ORDERS_0}
    assert reconciling.events == [
        ("assigned", [ORDERS_0, ORDERS_1]),
        ("revoked", [ORDERS_0]),
        ("assigned", [ORDERS_2]),
    ]


def test_nothing_to_revoke_commits_and_calls_nothing(reconciling: Reconciling) -> None:
    reconciling.assign(ORDERS_0)
    reconciling.subscriptions.state(ORDERS_0).seek(FetchPosition(7))
    reconciling.begin(ORDERS_0)
    assert reconciling.revoke() == 0
    assert not reconciling.commits.has_pending()
    assert reconciling.events == [("assigned", [ORDERS_0])]


def test_positions_are_committed_before_partitions_are_revoked(reconciling: Reconciling) -> None:
    reconciling.assign(ORDERS_0)
    reconciling.subscriptions.state(ORDERS_0).seek(FetchPosition(7))
    reconciling.begin()
    [commit] = reconciling.commits._waiting
    assert commit.offsets == {ORDERS_0: OffsetAndMetadata(7)}
    waits_ms = reconciling.revoke()
    assert isinstance(waits_ms, float)
    assert waits_ms > 0
    assert reconciling.assigned == [ORDERS_0]
    commit.future.succeed(None)
    assert reconciling.revoke() == 0
    assert reconciling.assigned == []


@pytest.mark.fault("R16")
@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt])
def test_interrupted_callback_runs_again_and_failed_one_does_not(
    reconciling: Reconciling, kind: type[BaseException]
) -> None:
    reconciling.assign(ORDERS_0)
    reconciling.begin()
    reconciling.error = kind()
    with pytest.raises(kind):
        reconciling.revoke(are_lost=True)
    assert reconciling.assigned == ([] if kind is ValueError else [ORDERS_0])
    assert reconciling.revoke(are_lost=True) == 0
    assert reconciling.assigned == []
    lost = [event for event in reconciling.events if event[0] == "lost"]
    assert len(lost) == (1 if kind is ValueError else 2)


@pytest.mark.fault("R16")
def test_blocking_consumer_refuses_a_coroutine_that_a_function_returns(
    world: ConsumerWorld,
) -> None:
    async def commit(partitions: list[TopicPartition]) -> None: ...

    consumer = world.consumer(group_id="g")
    consumer.subscribe("orders", on_assigned=lambda given: commit(given))  # noqa: PLW0108 (a plain function)
    with pytest.raises(InvalidTypeError, match=r"returned the coroutine .*kclient\.aio\.Consumer"):
        world.poll_until(consumer, lambda: False)
    assert consumer.assignment() == {ORDERS_0, ORDERS_1}


@pytest.mark.fault("R16")
def test_callback_that_unsubscribes_runs_once_and_the_member_leaves(
    world: ConsumerWorld, diary: Diary
) -> None:
    consumer = member(world, diary)
    revoked: list[list[TopicPartition]] = []

    def unsubscribe(partitions: list[TopicPartition]) -> None:
        revoked.append(partitions)
        if len(revoked) < 3:
            consumer.unsubscribe()

    consumer.subscribe("orders", on_revoked=unsubscribe)
    world.broker.group.rebalancing = True
    world.sleep(3_500.0)
    world.poll_until(consumer, lambda: bool(revoked))
    joins = len(world.broker.group.joins)
    consumer.subscribe("orders")
    world.poll_until(consumer, lambda: len(world.broker.group.joins) > joins)
    assert revoked == [[ORDERS_0, ORDERS_1]]
    assert world.broker.group.left == ["member-1"]
