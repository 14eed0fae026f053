"""Search for transactions that no coordinator ends (Kafka: kafka-transactions find-hanging)."""

from collections.abc import Iterable, Sequence

from kclient.admin.admin_types import TopicDescription
from kclient.admin.arguments import check_int
from kclient.admin.cluster_arguments import check_broker_ids
from kclient.admin.replica_calls import describe_producers
from kclient.admin.requester import Requester
from kclient.admin.topic_calls import describe_topics, list_topics
from kclient.admin.transaction_arguments import MAX_LONG, check_topics
from kclient.admin.transaction_calls import describe_transactions, list_transactions
from kclient.admin.transaction_types import HangingTransaction
from kclient.common.broker_errors import TransactionalIdNotFoundError
from kclient.common.types import TopicPartition
from kclient.common.waiting import Steps

DEFAULT_MAX_TIMEOUT_MS = 900_000
"""Default of the broker's ``transaction.max.timeout.ms``."""

_BATCH = 500  # partitions of a search at a time


def find_hanging_transactions(
    requester: Requester,
    *,
    broker_ids: int | Iterable[int] | None = None,
    topics: str | Iterable[str] | None = None,
    max_transaction_timeout_ms: int = DEFAULT_MAX_TIMEOUT_MS,
    timeout: float | None = None,
) -> Steps[list[HangingTransaction]]:
    """Find open transactions that no coordinator will end (KIP-664).

    A transaction hangs in a partition if its producer has not written there for longer than the
    longest transaction timeout, and no coordinator has the producer id, or the transaction that it
    has does not include the partition. `abort_transaction` ends it. Coordinators list only ids
    with the permission DESCRIBE: without it, old transactions of other ids are found, too.

    Args:
        broker_ids: Search partitions with a replica on these brokers only.
        topics: Search these topics only; by default all, also internal ones.
        max_transaction_timeout_ms: Longest transaction timeout of a producer, in ms: the brokers'
            ``transaction.max.timeout.ms``.
        timeout: Timeout in seconds.

    Raises:
        UnknownTopicOrPartitionError: There is no such topic.
        TopicAuthorizationError: Not authorized to read a topic.
    """
    brokers = None if broker_ids is None else set(check_broker_ids(broker_ids))
    names = None if topics is None else check_topics(topics)
    check_int("max_transaction_timeout_ms", max_transaction_timeout_ms, 0, high=MAX_LONG)
    requester.limit(timeout)
    return _find(requester, brokers, names, max_transaction_timeout_ms)


def _find(
    requester: Requester,
    brokers: set[int] | None,
    names: list[str] | None,
    max_timeout_ms: int,
) -> Steps[list[HangingTransaction]]:
    if names is None:
        names = [each.name for each in (yield from list_topics(requester, include_internal=True))]
    topics: Iterable[TopicDescription] = ()
    if names:
        described = yield from describe_topics(requester, names)
        topics = described.raise_for_errors().values()
    found = yield from _open_transactions(requester, _partitions(topics, brokers))
    last_ms = requester.wall_ms() - max_timeout_ms
    old = [each for each in found if each.producer.last_timestamp < last_ms]
    if not old:
        return []
    expected = yield from _expected(requester, {each.producer.producer_id for each in old})
    hanging = [each for each in old if (each.producer.producer_id, each.partition) not in expected]
    # A coordinator may have ended some of them since they were found.
    partitions = list(dict.fromkeys(each.partition for each in hanging))
    still_open = set((yield from _open_transactions(requester, partitions)))
    return [each for each in hanging if each in still_open]


def _open_transactions(
    requester: Requester, partitions: Sequence[TopicPartition]
) -> Steps[list[HangingTransaction]]:
    found: list[HangingTransaction] = []
    for start in range(0, len(partitions), _BATCH):
        batch = partitions[start : start + _BATCH]
        producers = (yield from describe_producers(requester, batch)).raise_for_errors()
        found += [
            HangingTransaction(partition, state)
            for partition in sorted(producers)
            for state in producers[partition]
            if state.current_transaction_start_offset is not None
        ]
    return found


def _partitions(
    topics: Iterable[TopicDescription], brokers: set[int] | None
) -> list[TopicPartition]:
    return [
        TopicPartition(topic.name, each.partition)
        for topic in topics
        for each in topic.partitions
        if brokers is None or not brokers.isdisjoint(each.replicas)
    ]


def _expected(
    requester: Requester, producer_ids: set[int]
) -> Steps[set[tuple[int, TopicPartition]]]:
    """Return the producer ids and partitions for which a coordinator will write a marker."""
    listed = yield from list_transactions(requester, producer_ids=sorted(producer_ids))
    owners = {each.transactional_id: each.producer_id for each in listed}
    if not owners:
        return set()
    described = yield from describe_transactions(requester, list(owners))
    unknown = [
        name
        for name, error in described.errors.items()
        if isinstance(error, TransactionalIdNotFoundError)
    ]
    return {
        (owners[name], partition)
        for name in described
        if name not in unknown
        for partition in described[name].topic_partitions
    }
