"""Invariants of replicated partitions: R1 to R10.

- R1: nothing that was acknowledged to acks=all is lost.
- R2: logs with a batch in common have the same batches before it, without holes.
- R3: the high watermark of a leader is not above the end of any replica that must count.
- R4: the leader's in-sync replicas are those of the metadata with its partition epoch.
- R5: what can be read at an offset does not change, and does not vanish, at any replica.
- R6: log start ≤ high watermark ≤ log end; at a leader the watermark rises.
- R7: a replica in the in-sync replicas has all that could ever be read.
- R8: epochs in a log do not fall, and the epoch cache agrees with the log.
- R9: an acknowledged record is held by min.insync.replicas replicas.
- R10: a followed partition has one fetcher, a led one has none.
"""

from itertools import pairwise

from kclient.broker.metadata.metadata_image import MetadataImage, PartitionRegistration
from kclient.broker.replication.partition import Partition
from kclient.broker.replication.replica_fetcher_manager import ReplicaFetcherManager
from kclient.common.types import TopicPartition
from kclient.record import RecordBatch
from tests.cluster_simulation.disk_log import Batch, DiskLog
from tests.cluster_simulation.nodes import IDS, ClusterNode, Nodes

MIN_ISR = 2


class PartitionTruth:
    """What could be read of a partition, and what was acknowledged, kept outside of the nodes.

    Attributes:
        visible: Batches below the high watermark of some node, by base offset.
        acknowledged: Values by offset, as producers know them.
    """

    def __init__(self, where: TopicPartition, nodes: Nodes) -> None:
        self.where = where
        self._nodes = nodes
        self._logs = {
            node.id: DiskLog(node.machine, f"{where.topic}-{where.partition}")
            for node in nodes.all.values()
        }
        self._signatures: dict[int, object] = {}
        self._leader_watermarks: dict[tuple[int, int, int], int] = {}
        self._tail: dict[int, int] = dict.fromkeys(IDS, 0)
        self.visible: dict[int, Batch] = {}
        self.visible_end = 0
        self.acknowledged: dict[int, bytes] = {}

    def acknowledge(self, offset: int, value: bytes) -> None:
        """Note a record that was acknowledged; check R9."""
        self.acknowledged[offset] = value
        holders = []
        for node in self._nodes.all.values():
            self._look(node)
            if self._logs[node.id].end_offset > offset or node.may_have_lost:
                holders.append(node.id)
        assert len(holders) >= MIN_ISR, f"R9: only {holders} have {self.where}@{offset}"

    def check(self, committed: MetadataImage) -> None:
        """Check what has changed since the last check.

        Args:
            committed: The newest metadata that is committed.
        """
        registration = committed.partition(self.where)
        has_changed = False
        for node in self._nodes.all.values():
            partition = node.partition(self.where)
            if partition is None:
                continue
            log, in_sync = partition.log, partition.in_sync
            signature = (
                node.life,
                log.log_end_offset,
                log.high_watermark,
                partition.leader_epoch,
                partition.is_leader,
                in_sync.isr,
                in_sync.maximal_isr,
                None if registration is None else registration.partition_epoch,
            )
            if signature == self._signatures.get(node.id):
                continue
            self._signatures[node.id] = signature
            has_changed = True
            self._look(node)
            self._check_bounds(node, partition)
            self._check_visible(node, partition)
            self._check_fetchers(node, partition)
            if partition.is_leader and registration is not None:
                self._check_leader(node, partition, registration)
        if has_changed:
            self._check_matching()
            if registration is not None:
                self._check_in_sync(registration)

    def check_end(self) -> None:
        """Check, when all replicas are in sync, that logs are equal and nothing is lost: R1, R2."""
        for node in self._nodes.all.values():
            self._look(node)
        first, *others = (self._logs[each] for each in IDS)
        for other in others:
            assert other.bytes == first.bytes, f"R2: logs of {self.where} differ"
        for node in self._nodes.all.values():
            self._check_cache(node)

    def values(self) -> dict[int, bytes]:
        """Return the values by offset of the first node's log."""
        found: dict[int, bytes] = {}
        for data in self._logs[IDS[0]].bytes:
            for record in RecordBatch(data).records():
                found[record.offset] = bytes(record.value or b"")
        return found

    def _look(self, node: ClusterNode) -> None:
        partition = node.partition(self.where)
        truncations = -1 if partition is None else partition.log._local.truncations
        if self._logs[node.id].look((node.life, node.lost_disk, truncations)):
            batches = self._logs[node.id].batches
            for before, after in pairwise(batches):
                assert before.epoch <= after.epoch, f"R8: epochs of {node.id} fall: {after}"
                assert after.base_offset == before.last_offset + 1, f"R2: hole in {node.id}"

    def _check_bounds(self, node: ClusterNode, partition: Partition) -> None:
        log = partition.log
        bounds = (log.log_start_offset, log.high_watermark, log.log_end_offset)
        assert list(bounds) == sorted(bounds), f"R6: bounds of {node.id}: {bounds}"
        if partition.is_leader:
            key = (node.id, node.life, partition.leader_epoch)
            before = self._leader_watermarks.get(key, 0)
            assert log.high_watermark >= before, f"R6: high watermark of leader {node.id} falls"
            self._leader_watermarks[key] = log.high_watermark

    def _check_visible(self, node: ClusterNode, partition: Partition) -> None:
        high_watermark = partition.log.high_watermark
        log = self._logs[node.id]
        index = log.index(high_watermark - 1)
        while index is not None and index >= 0:
            batch = log.batches[index]
            known = self.visible.get(batch.base_offset)
            if known == batch:
                break  # those before it have been compared
            if batch.last_offset < high_watermark:
                assert known is None, f"R5: {node.id} has {batch}, before it was {known}"
                assert batch.base_offset >= self.visible_end, (
                    f"R5: {node.id} has {batch} among batches that were visible"
                )
                self.visible[batch.base_offset] = batch
            index -= 1
        self.visible_end = max(self.visible_end, high_watermark)

    def _check_leader(
        self, node: ClusterNode, partition: Partition, now: PartitionRegistration
    ) -> None:
        if partition.leader_epoch != now.leader_epoch:
            return
        state = partition.in_sync
        assert state.maximal_isr >= set(now.isr), f"R4: {state.maximal_isr}, committed {now.isr}"
        if state.partition_epoch == now.partition_epoch:
            assert set(state.isr) == set(now.isr), f"R4: {state.isr}, committed {now.isr}"
        for each in {*now.isr, *state.maximal_isr}:
            other = self._nodes.all[each]
            known = partition._context.brokers(each)
            if other.may_have_lost or (known is not None and known.epoch == other.lost_epoch):
                continue  # this leader does not know it yet
            self._look(other)
            end = self._logs[each].end_offset
            assert partition.log.high_watermark <= end, (
                f"R3: leader {node.id} has {partition.log.high_watermark}, {each} ends at {end}"
            )

    def _check_matching(self) -> None:
        for one, other in ((1, 2), (1, 3), (2, 3)):
            first, second = self._logs[one].batches, self._logs[other].batches
            common = self._common(first, second)
            for each, same in zip(first[common:], second[common:], strict=False):
                assert each != same, f"R2: {one} and {other} have {each} after other batches"
                assert each.epoch != same.epoch or each.base_offset != same.base_offset, (
                    f"R2: {each} and {same} in one epoch"
                )

    @staticmethod
    def _common(first: list[Batch], second: list[Batch]) -> int:
        """Return the length of the common prefix; batches after it must all differ."""
        low, high = 0, min(len(first), len(second))
        while low < high:
            middle = (low + high + 1) // 2
            if first[middle - 1] == second[middle - 1]:
                low = middle
            else:
                high = middle - 1
        return low

    def _check_in_sync(self, now: PartitionRegistration) -> None:
        for each in now.isr:
            node = self._nodes.all[each]
            if node.may_have_lost:
                continue
            self._look(node)
            log = self._logs[each]
            assert log.end_offset >= self.visible_end, (
                f"R7: {each} in {now.isr} ends at {log.end_offset}, visible {self.visible_end}"
            )
            if self.visible:
                last = self.visible[max(self.visible)]
                assert log.at(last.base_offset) == last, f"R7: {each} lacks {last}"

    def _check_fetchers(self, node: ClusterNode, partition: Partition) -> None:
        server = node.running
        assert server is not None
        fetchers = server.services.replica_manager.hosted.fetchers
        assert isinstance(fetchers, ReplicaFetcherManager)
        count = sum(
            state.partition.topic_partition == self.where
            for each in list(fetchers._fetchers.values())
            for state in list(each._states.values())
        )
        assert count <= (0 if partition.is_leader else 1), f"R10: {count} fetchers at {node.id}"

    def _check_cache(self, node: ClusterNode) -> None:
        """Check that the epoch cache has the first offset of each epoch in the log: R8."""
        partition = node.partition(self.where)
        assert partition is not None
        starts: dict[int, int] = {}
        for batch in self._logs[node.id].batches:
            starts.setdefault(batch.epoch, batch.base_offset)
        entries = {each.epoch: each.start_offset for each in partition.log._state.epochs.entries}
        for epoch, start in starts.items():
            assert entries.get(epoch) == start, f"R8: {node.id} has {entries}, its log {starts}"
