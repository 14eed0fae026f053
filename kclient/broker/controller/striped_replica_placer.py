"""Placement of new replicas over brokers and racks (Kafka: StripedReplicaPlacer).

- Racks have a random order of turn, as have the brokers of each rack.
- A partition gets one replica per rack before a rack gets its second; the next partition starts
  one rack later, and one broker later within each rack.
- Within a rack, unfenced brokers come before fenced ones. The first replica, which is to lead, is
  on an unfenced broker.
- After as many partitions as there are unfenced brokers, the orders are shuffled.
- Brokers that are shutting down, or whose log directories are all cordoned, receive no replica.
"""

from collections.abc import Container, Iterable, Sequence
from typing import Any, Protocol

from kclient.broker.metadata.metadata_image import BrokerRegistration
from kclient.common.broker_errors import (
    InvalidReplicaAssignmentError,
    InvalidReplicationFactorError,
)


class PlacementSource(Protocol):
    """Source of random placements, such as `random.Random`."""

    def randrange(self, stop: int, /) -> int:
        """Return a number from 0 to `stop - 1`."""
        ...

    def shuffle(self, x: list[Any], /) -> None:
        """Reorder a list."""
        ...


class _Turns:
    """Brokers of a rack in the same state, which take turns."""

    def __init__(self, source: PlacementSource) -> None:
        self._source = source
        self.brokers: list[int] = []
        self._first = 0
        self._given = 0

    def start(self) -> None:
        """Start with a random broker."""
        self.brokers.sort()
        if self.brokers:
            self._first = self._source.randrange(len(self.brokers))

    def next_partition(self) -> None:
        """Start another partition one broker later."""
        self._given = 0
        self._first += 1

    def shuffle(self) -> None:
        """Change the order."""
        self._source.shuffle(self.brokers)

    def take(self) -> int | None:
        """Return a broker that has no replica of this partition, or None."""
        if self._given == len(self.brokers):
            return None
        self._given += 1
        return self.brokers[(self._first + self._given - 1) % len(self.brokers)]


class _Rack:
    """Brokers of a rack."""

    def __init__(self, source: PlacementSource) -> None:
        self.unfenced = _Turns(source)
        self.fenced = _Turns(source)

    @property
    def turns(self) -> tuple[_Turns, _Turns]:
        """Unfenced brokers, then fenced ones."""
        return self.unfenced, self.fenced

    def take(self) -> int | None:
        """Return the next broker for the partition, or None if the rack has no other."""
        broker = self.unfenced.take()
        return self.fenced.take() if broker is None else broker


class StripedReplicaPlacer:
    """Placer of the partitions of one topic."""

    def __init__(self, brokers: Iterable[BrokerRegistration], source: PlacementSource) -> None:
        """Start with a random rack.

        Args:
            brokers: Registered brokers; those that must not receive replicas are left out here.
            source: Source of the starting points.
        """
        self._source = source
        racks: dict[str | None, _Rack] = {}
        for broker in brokers:
            if is_usable(broker):
                rack = racks.setdefault(broker.rack, _Rack(source))
                (rack.fenced if broker.fenced else rack.unfenced).brokers.append(broker.id)
        self._racks = [racks[name] for name in sorted(racks, key=lambda name: name or "")]
        self._unfenced = sum(len(rack.unfenced.brokers) for rack in self._racks)
        self._total = self._unfenced + sum(len(rack.fenced.brokers) for rack in self._racks)
        for rack in self._racks:
            for turns in rack.turns:
                turns.start()
        self._first_rack = source.randrange(len(self._racks)) if self._racks else 0
        self._placed = 0

    def place(self, count: int, factor: int) -> list[tuple[int, ...]]:
        """Return the replicas of each of `count` partitions; the first of each is to lead.

        Args:
            count: Number of partitions.
            factor: Replication factor.

        Raises:
            InvalidReplicationFactorError: There are too few brokers, or none is unfenced.
        """
        self._check(factor)
        return [self._place_partition(factor) for _ in range(count)]

    def _check(self, factor: int) -> None:
        problem = None
        if factor < 1:
            problem = f"Invalid replication factor {factor}: it must be positive."
        elif not self._unfenced and self._total:
            problem = "All brokers are currently fenced."
        elif factor > self._total:
            problem = (
                f"The target replication factor of {factor} cannot be reached because only "
                f"{self._total} broker(s) are registered or some brokers have all their log "
                "directories cordoned."
            )
        if problem is not None:
            raise InvalidReplicationFactorError(
                f"Unable to replicate the partition {factor} time(s): {problem}"
            )

    def _place_partition(self, factor: int) -> tuple[int, ...]:
        if self._placed == self._unfenced:
            self._shuffle()
        count = len(self._racks)
        order = [(self._first_rack + index) % count for index in range(count)]
        leader_rack = next(index for index in order if self._racks[index].unfenced.brokers)
        chosen = [broker for broker in (self._racks[leader_rack].take(),) if broker is not None]
        is_first_round = True
        while len(chosen) < factor:
            for index in order:
                if len(chosen) == factor or (is_first_round and index == leader_rack):
                    continue
                broker = self._racks[index].take()
                if broker is not None:
                    chosen.append(broker)
            is_first_round = False
        self._next_partition()
        return tuple(chosen)

    def _next_partition(self) -> None:
        self._placed += 1
        self._first_rack = (self._first_rack + 1) % len(self._racks)
        for rack in self._racks:
            for turns in rack.turns:
                turns.next_partition()

    def _shuffle(self) -> None:
        self._placed = 0
        self._source.shuffle(self._racks)
        for rack in self._racks:
            for turns in rack.turns:
                turns.shuffle()


def is_usable(broker: BrokerRegistration) -> bool:
    """Return whether a broker may receive new replicas, fenced or not."""
    if broker.in_controlled_shutdown:
        return False
    return not broker.directories or not set(broker.directories) <= set(broker.cordoned_directories)


def checked_replicas(registered: Container[int], replicas: Sequence[int]) -> tuple[int, ...]:
    """Return the replicas of a partition.

    Raises:
        InvalidReplicaAssignmentError: There are none, one is named twice, or no registered broker.
    """
    if not replicas:
        raise InvalidReplicaAssignmentError(
            "The manual partition assignment includes an empty replica list."
        )
    for broker in replicas:
        if broker not in registered:
            raise InvalidReplicaAssignmentError(
                f"The manual partition assignment includes broker {broker}, but no such broker is "
                "registered."
            )
    repeated = next((each for each in replicas if replicas.count(each) > 1), None)
    if repeated is not None:
        raise InvalidReplicaAssignmentError(
            f"The manual partition assignment includes the broker {repeated} more than once."
        )
    return tuple(replicas)
