"""Elections by request and by the periodic tasks of the controller.

Source: Kafka's ReplicationControlManager: electLeaders, maybeBalancePartitionLeaders and
maybeElectUncleanLeaders.
"""

from collections.abc import Iterable, Iterator

from kclient.broker.controller.cluster_view import ClusterView, ControllerResult
from kclient.broker.controller.partition_change_builder import Election
from kclient.broker.controller.partition_index import PartitionKey
from kclient.broker.metadata.metadata_image import NO_LEADER
from kclient.common.broker_errors import (
    NONE,
    ElectionNotNeededError,
    EligibleLeadersNotAvailableError,
    InvalidRequestError,
    PreferredLeaderNotAvailableError,
    UnknownTopicOrPartitionError,
    code_of,
)
from kclient.common.errors import KafkaError
from kclient.protocol.messages.leaders_and_reassignments import (
    ElectLeadersPartitionResult,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ReplicaElectionResult,
)
from kclient.protocol.messages.metadata_records import MetadataRecord, PartitionChangeRecord

MAX_ELECTIONS = 1000
"""Elections of a periodic task at once (Kafka: MAX_ELECTIONS_PER_IMBALANCE)."""

_ELECTIONS = {0: Election.PREFERRED, 1: Election.UNCLEAN}


def elect_leaders(
    view: ClusterView, request: ElectLeadersRequest
) -> ControllerResult[ElectLeadersResponse]:
    """Plan the elections of a request; partitions that need none are left out if all are asked.

    Raises:
        InvalidRequestError: The kind of election is unknown.
    """
    election = _ELECTIONS.get(request.election_type)
    if election is None:
        raise InvalidRequestError(f"Unknown election type {request.election_type}")
    records: list[MetadataRecord] = []
    results: dict[str, list[ElectLeadersPartitionResult]] = {}
    for topic, number in dict.fromkeys(_requested(view, request)):
        error = _elect(view, topic, number, election, records)
        if request.topic_partitions is None and isinstance(error, ElectionNotNeededError):
            continue
        results.setdefault(topic, []).append(
            ElectLeadersPartitionResult(
                partition_id=number,
                error_code=NONE if error is None else code_of(error),
                error_message=None if error is None else str(error),
            )
        )
    response = ElectLeadersResponse(
        replica_election_results=[
            ReplicaElectionResult(topic=topic, partition_result=partitions)
            for topic, partitions in results.items()
        ]
    )
    return ControllerResult(records, response, is_atomic=False)


def _requested(view: ClusterView, request: ElectLeadersRequest) -> Iterator[tuple[str, int]]:
    if request.topic_partitions is None:
        topics = view.image.topics
        for topic in topics.values():
            yield from ((topic.name, number) for number in range(len(topic.partitions)))
        return
    for named in request.topic_partitions:
        yield from ((named.topic, number) for number in named.partitions)


def _elect(
    view: ClusterView, name: str, number: int, election: Election, records: list[MetadataRecord]
) -> KafkaError | None:
    """Add the record of an election; return the error if there is none."""
    topic = view.image.topic(name)
    if topic is None:
        return UnknownTopicOrPartitionError(f"No such topic as {name}")
    if not 0 <= number < len(topic.partitions):
        return UnknownTopicOrPartitionError(f"No such partition as {name}-{number}")
    partition = topic.partitions[number]
    if (election is Election.PREFERRED and partition.leader == partition.replicas[0]) or (
        election is Election.UNCLEAN and partition.leader != NO_LEADER
    ):
        return ElectionNotNeededError("Leader election not needed for topic partition.")
    key = (topic.topic_id, number)
    record = _election(view, key, election)
    if record is not None:
        records.append(record)
        return None
    if election is Election.PREFERRED:
        return PreferredLeaderNotAvailableError("The preferred leader was not available.")
    return EligibleLeadersNotAvailableError("Eligible topic partition leaders are not available.")


def _election(
    view: ClusterView, key: PartitionKey, election: Election
) -> PartitionChangeRecord | None:
    """Return the record of a partition's election, or None if it elects no (preferred) leader."""
    builder = view.builder(key)
    builder.election = election
    record = builder.build()
    if record is None or record.leader < 0:
        return None
    if election is Election.PREFERRED and record.leader != view.partition(key).replicas[0]:
        return None
    return record


def balance_leaders(view: ClusterView) -> ControllerResult[bool]:
    """Elect preferred leaders; the response is whether there may be more to elect.

    Kafka: ``auto.leader.rebalance.enable``.
    """
    return _elections(view, list(view.index.imbalanced), Election.PREFERRED)


def elect_unclean_leaders(view: ClusterView) -> ControllerResult[bool]:
    """Elect unclean leaders where the topic allows it and there is no leader."""
    keys = [key for key in view.index.leaderless if view.unclean_enabled(view.topic(key).name)]
    return _elections(view, keys, Election.UNCLEAN)


def _elections(
    view: ClusterView, keys: Iterable[PartitionKey], election: Election
) -> ControllerResult[bool]:
    records: list[MetadataRecord] = []
    for key in keys:
        if len(records) == MAX_ELECTIONS:
            return ControllerResult(records, response=True, is_atomic=False)
        record = _election(view, key, election)
        if record is not None:
            records.append(record)
    return ControllerResult(records, response=False, is_atomic=False)
