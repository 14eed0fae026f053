"""Changes of one partition (Kafka: PartitionChangeBuilder).

A caller sets the targets it wants and calls `build`, which derives the rest in Kafka's order:

1. A reassignment whose targets are all in sync ends.
2. Where ``eligible.leader.replicas.version`` is on, the eligible leader replicas follow the ISR.
3. A leader is elected if another kind of election is requested or the leader is not valid any more.
4. If a replica left the assignment, or the ISR shrank before metadata.version 3.6-IV0, the leader
   epoch is raised although the leader remains.
5. The ISR is written if it changed. Without eligible leader replicas it is never empty: the last
   member remains, without a leader.
"""

from collections.abc import Callable, Iterable
from enum import Enum
from typing import NamedTuple

from kclient.broker.metadata.metadata_image import (
    NO_LEADER,
    RECOVERING,
    PartitionRegistration,
)
from kclient.broker.metadata.metadata_version import MetadataVersion
from kclient.protocol.messages.metadata_records import PartitionChangeRecord

NO_LEADER_CHANGE = -2

Replicas = tuple[int, ...]


class Election(Enum):
    """Kind of election."""

    ONLINE = "online"
    PREFERRED = "preferred"
    UNCLEAN = "unclean"


class ChangeRules(NamedTuple):
    """Settings that a change depends on.

    Attributes:
        metadata_version: Finalized level of metadata.version.
        elr_enabled: Whether ``eligible.leader.replicas.version`` is at least 1.
        min_isr: ``min.insync.replicas`` of the topic.
        default_directory: Returns the directory id of a broker's new replicas.
    """

    metadata_version: MetadataVersion
    elr_enabled: bool
    min_isr: int
    default_directory: Callable[[int], bytes]


class _Choice(NamedTuple):
    """Elected leader, -1 for none, and whether it may lack records."""

    leader: int
    unclean: bool = False


def without(replicas: Iterable[int], removed: Iterable[int]) -> Replicas:
    """Return the replicas that are not in `removed`, in their order."""
    gone = frozenset(removed)
    return tuple(replica for replica in replicas if replica not in gone)


class PartitionChangeBuilder:
    """Builder of a partition's change record.

    Attributes:
        election: Kind of election.
        target_isr: ISR before the effects of a reassignment or election.
        target_replicas: Replicas.
        target_adding: Replicas that a reassignment adds.
        target_removing: Replicas that a reassignment removes.
        target_recovery_state: Leader recovery state.
        target_directories: Directories of `target_replicas`; None to derive them.
        unclean_replicas: Brokers that stopped without writing all their records to disk.
    """

    def __init__(
        self,
        partition: PartitionRegistration,
        key: tuple[bytes, int],
        rules: ChangeRules,
        is_acceptable: Callable[[int], bool],
    ) -> None:
        """Start without a change.

        Args:
            partition: The partition.
            key: Topic id and partition number.
            rules: Settings.
            is_acceptable: Whether a broker may lead the partition: unfenced, not shutting down,
                and the directory of its replica online.
        """
        self._partition = partition
        self._key = key
        self._rules = rules
        self._is_acceptable = is_acceptable
        self.election = Election.ONLINE
        self.target_isr: Replicas = partition.isr
        self.target_replicas: Replicas = partition.replicas
        self.target_adding: Replicas = partition.adding
        self.target_removing: Replicas = partition.removing
        self.target_recovery_state = partition.recovery_state
        self.target_directories: tuple[bytes, ...] | None = None
        self.unclean_replicas: Replicas = ()
        self._elr: Replicas = partition.elr
        self._last_known: Replicas = partition.last_known_elr

    def build(self) -> PartitionChangeRecord | None:
        """Return the record, or None if nothing changes."""
        topic_id, number = self._key
        record = PartitionChangeRecord(partition_id=number, topic_id=topic_id)
        self._complete_reassignment()
        self._update_elr()
        self._elect(record)
        self._bump_leader_epoch(record)
        self._set_isr(record)
        self._set_elr(record)
        self._set_assignment(record)
        if self.target_recovery_state != self._partition.recovery_state:
            record.leader_recovery_state = self.target_recovery_state
        empty = PartitionChangeRecord(partition_id=number, topic_id=topic_id)
        return None if record == empty else record

    def _complete_reassignment(self) -> None:
        """End a reassignment if all its targets are in sync (KIP-455)."""
        if not self.target_adding and not self.target_removing:
            return
        targets = without(self.target_replicas, self.target_removing)
        remaining = without(self.target_isr, self.target_removing)
        if not remaining or not targets or not set(targets) <= set(self.target_isr):
            return
        if self.target_directories is not None:
            directory_of = dict(zip(self.target_replicas, self.target_directories, strict=True))
            self.target_directories = tuple(directory_of[replica] for replica in targets)
        self.target_replicas, self.target_isr = targets, remaining
        self.target_adding = self.target_removing = ()

    def _update_elr(self) -> None:
        """Derive the eligible leader replicas from the change of the ISR (KIP-966)."""
        if not self._rules.elr_enabled:
            return
        if len(self.target_isr) >= min(self._rules.min_isr, len(self.target_replicas)):
            self._elr = self._last_known = ()
            return
        old = self._partition
        candidates = [*old.elr, *without(old.isr, old.elr)]
        unusable = {*self.target_isr, *self.unclean_replicas}
        unusable.update(without(candidates, self.target_replicas))
        self._elr = without(candidates, unusable)
        known = [*candidates, *without(old.last_known_elr, candidates)]
        self._last_known = without(
            (replica for replica in known if replica in self.target_replicas),
            {*self.target_isr, *self._elr},
        )

    def _elect(self, record: PartitionChangeRecord) -> None:
        choice = self._choose()
        if choice.leader == self._partition.leader and choice.leader in self.target_isr:
            return
        if choice.leader != self._partition.leader or choice.unclean:
            record.leader = choice.leader
        if choice.leader == NO_LEADER:
            return
        if choice.unclean:
            self.target_isr = (choice.leader,)
            self.target_recovery_state = RECOVERING
        elif choice.leader not in self.target_isr:
            self.target_isr = (choice.leader,)
        else:
            return
        self._update_elr()

    def _choose(self) -> _Choice:
        old = self._partition
        if self.election is Election.PREFERRED and self._is_valid(self.target_replicas[0]):
            return _Choice(self.target_replicas[0])
        eligible = self.target_isr or (self._elr if self._rules.elr_enabled else ())
        for replica in (old.leader, *self.target_replicas):
            if replica in eligible and self._is_valid(replica):
                return _Choice(replica)
        if self._can_elect_last_known():
            return _Choice(old.last_known_elr[0], unclean=True)
        if self.election is Election.UNCLEAN:
            for replica in self.target_replicas:
                if self._is_acceptable(replica):
                    return _Choice(replica, unclean=True)
        return _Choice(NO_LEADER)

    def _is_valid(self, replica: int) -> bool:
        """Return whether a replica has all committed records and is acceptable."""
        eligible = replica in self.target_isr or (self._rules.elr_enabled and replica in self._elr)
        return eligible and replica in self.target_replicas and self._is_acceptable(replica)

    def _can_elect_last_known(self) -> bool:
        """Return whether the leader before ISR and ELR became empty can lead again."""
        last_known = self._partition.last_known_elr
        return (
            self._rules.elr_enabled
            and not self.target_isr
            and not self._elr
            and len(last_known) == 1
            and last_known[0] in self.target_replicas
            and self._is_acceptable(last_known[0])
        )

    def _bump_leader_epoch(self, record: PartitionChangeRecord) -> None:
        """Raise the leader epoch where the leader remains but must notice the change."""
        if record.leader != NO_LEADER_CHANGE:
            return
        old = self._partition
        replica_left = bool(without(old.replicas, self.target_replicas))
        shrank = bool(without(old.isr, self.target_isr)) and bool(self.target_isr)
        if replica_left or (shrank and self._rules.metadata_version.bumps_epoch_on_shrink):
            record.leader = old.leader

    def _set_isr(self, record: PartitionChangeRecord) -> None:
        if not self.target_isr and not self._rules.elr_enabled:
            return
        if set(self.target_isr) != set(self._partition.isr):
            record.isr = list(self.target_isr)

    def _set_elr(self, record: PartitionChangeRecord) -> None:
        if not self._rules.elr_enabled:
            return
        old = self._partition
        leader = old.leader if record.leader == NO_LEADER_CHANGE else record.leader
        if not self.target_isr:
            # The first time that a partition is without a leader, its last one is remembered.
            if old.leader != NO_LEADER:
                self._last_known = (old.leader,)
            elif old.last_known_elr:
                self._last_known = old.last_known_elr
        elif leader != NO_LEADER:
            self._last_known = ()
        if self._elr != old.elr:
            record.eligible_leader_replicas = list(self._elr)
        if self._last_known != old.last_known_elr:
            record.last_known_elr = list(self._last_known)

    def _set_assignment(self, record: PartitionChangeRecord) -> None:
        old = self._partition
        if self.target_replicas != old.replicas:
            record.replicas = list(self.target_replicas)
        if self.target_adding != old.adding:
            record.adding_replicas = list(self.target_adding)
        if self.target_removing != old.removing:
            record.removing_replicas = list(self.target_removing)
        if self._rules.metadata_version.has_directories:
            directories = self._directories()
            if directories != old.directories:
                record.directories = list(directories)

    def _directories(self) -> tuple[bytes, ...]:
        """Return the directories: replicas that remain keep theirs."""
        if self.target_directories is not None:
            return self.target_directories
        old = self._partition
        if self.target_replicas == old.replicas:
            return old.directories
        known = dict(zip(old.replicas, old.directories, strict=False))
        return tuple(
            known[replica] if replica in known else self._rules.default_directory(replica)
            for replica in self.target_replicas
        )
