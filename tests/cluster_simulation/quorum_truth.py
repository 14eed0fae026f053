"""Invariants of the metadata quorum and of the committed metadata: Q1 to Q5, Q8, C1 to C5.

- Q1: an epoch has one leader, in the files of the nodes and in their memory.
- Q2: the epoch of a node does not fall, and a node votes once in an epoch, over restarts too.
- Q3: a high watermark does not fall, and a majority of the voters has what is below it.
- Q4: logs with a batch in common have the same batches before it.
- Q5: a new leader has all that was ever committed.
- Q8: images at an offset are equal at all nodes.
- C1 to C5: invariants of each committed image, checked by `Observer`.
"""

from kclient.broker.metadata.metadata_image import MetadataImage
from kclient.broker.raft.leader_state import LeaderState
from kclient.broker.raft.quorum_state_store import ElectionState
from kclient.broker.raft.raft_types import NO_NODE, CommittedBatch
from kclient.record import RecordBatch
from kclient.record.batch_header import CONTROL_FLAG
from tests.cluster_simulation.disk_log import Batch, DiskLog
from tests.cluster_simulation.nodes import IDS, ClusterNode, Nodes
from tests.support.virtual.controller_model import Observer

_DIRECTORY = "__cluster_metadata-0"


class QuorumTruth:
    """What the nodes have decided, kept outside of them.

    Attributes:
        committed: Batches that are committed.
        observer: The committed metadata, record by record.
    """

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._logs = {node.id: DiskLog(node.machine, _DIRECTORY) for node in nodes.all.values()}
        self._leaders: dict[int, int] = {}
        self._votes: dict[tuple[int, int], int] = {}
        self._epochs = dict.fromkeys(IDS, 0)
        self._seen: dict[tuple[int, int], tuple[Batch, Batch | None]] = {}
        self._known: dict[int, list[Batch]] = {each: [] for each in IDS}
        self._high_watermarks: dict[tuple[int, int], int] = {}
        self._signatures: dict[int, object] = {}
        self._images: dict[int, MetadataImage] = {}
        self.committed: list[Batch] = []
        self.observer = Observer(unclean=False)

    @property
    def committed_end(self) -> int:
        """Offset after the last committed record."""
        return self.committed[-1].last_offset + 1 if self.committed else 0

    def persisted(self, node_id: int, state: ElectionState) -> None:
        """Check the election state that a node has written: Q1, Q2."""
        before = self._epochs[node_id]
        assert state.epoch >= before, f"Q2: epoch of {node_id} falls: {before}, {state.epoch}"
        self._epochs[node_id] = state.epoch
        if state.voted is not None:
            voted = self._votes.setdefault((node_id, state.epoch), state.voted.id)
            assert voted == state.voted.id, (
                f"Q2: {node_id} votes for {voted} and {state.voted.id} in {state.epoch}"
            )
        if state.leader_id != NO_NODE:
            self._leads(state.leader_id, state.epoch)

    def check(self) -> None:
        """Check what has changed since the last check."""
        for node in self._nodes.all.values():
            server = node.running
            if server is None:
                continue
            client, image = server.storage.raft.client, server.services.metadata.image
            end, high_watermark = client.log_end_offset, client.high_watermark or 0
            state = client._quorum.state
            signature = (node.life, id(state), end, high_watermark, image.offset)
            if signature == self._signatures.get(node.id):
                continue
            self._signatures[node.id] = signature
            self._look(node)
            if isinstance(state, LeaderState):
                is_new = self._leaders.get(state.epoch) is None
                self._leads(node.id, state.epoch)
                if is_new:
                    self._check_complete(node)
            self._check_high_watermark(node, high_watermark)
            self._check_image(node, image)

    def holders(self, batch: Batch) -> list[int]:
        """Return the nodes whose disk has a metadata batch."""
        found = []
        for node in self._nodes.all.values():
            self._look(node)
            if self._logs[node.id].at(batch.base_offset) == batch:
                found.append(node.id)
        return found

    def _leads(self, leader_id: int, epoch: int) -> None:
        known = self._leaders.setdefault(epoch, leader_id)
        assert known == leader_id, f"Q1: epoch {epoch} has the leaders {known} and {leader_id}"

    def _look(self, node: ClusterNode) -> None:
        server, log = node.running, self._logs[node.id]
        truncations = -1 if server is None else server.storage.raft._log._local.truncations
        if not log.look((node.life, node.lost_disk, truncations)):
            return
        known = self._known[node.id]
        same = 0
        while same < min(len(known), len(log.batches)) and known[same] == log.batches[same]:
            same += 1
        for index in range(same, len(log.batches)):
            before = log.batches[index - 1] if index else None
            self._check_matching(node, log.batches[index], before)
        self._known[node.id] = list(log.batches)

    def _check_matching(self, node: ClusterNode, batch: Batch, before: Batch | None) -> None:
        known, known_before = self._seen.setdefault(
            (batch.base_offset, batch.epoch), (batch, before)
        )
        assert known == batch, f"Q4: node {node.id} has {batch}, another node {known}"
        assert known_before == before, (
            f"Q4: before {batch} node {node.id} has {before}, another node {known_before}"
        )

    def _check_complete(self, node: ClusterNode) -> None:
        log = self._logs[node.id]
        have = log.batches[: len(self.committed)]
        assert have == self.committed, (
            f"Q5: leader {node.id} has {have[-2:]}, committed {self.committed[-2:]}"
        )

    def _check_high_watermark(self, node: ClusterNode, high_watermark: int) -> None:
        key = (node.id, node.life)
        before = self._high_watermarks.get(key, 0)
        assert high_watermark >= before, f"Q3: high watermark of {node.id} falls from {before}"
        self._high_watermarks[key] = high_watermark
        log = self._logs[node.id]
        while self.committed_end < high_watermark:
            batch = log.at(self.committed_end)
            assert batch is not None, f"Q3: {node.id} lacks {self.committed_end}"
            holders = self.holders(batch)
            assert len(holders) * 2 > len(IDS), f"Q3: only {holders} have {batch}"
            self.committed.append(batch)
            index = log.index(batch.base_offset)
            assert index is not None
            self._observe(batch, log.bytes[index])
        index = log.index(high_watermark - 1)
        if index is not None:
            assert log.batches[index] == self.committed[index], (
                f"Q5: {node.id} has {log.batches[index]}, committed {self.committed[index]}"
            )

    def _observe(self, batch: Batch, data: bytes) -> None:
        parsed = RecordBatch(data)
        if parsed.attributes & CONTROL_FLAG:
            return
        values = tuple(bytes(record.value or b"") for record in parsed.records())
        committed = CommittedBatch(
            batch.base_offset, batch.last_offset, batch.epoch, 0, len(data), values
        )
        try:
            self.observer.observe(committed)
        except AssertionError as problem:
            raise AssertionError(f"C: after {batch}: {problem}") from problem

    def _check_image(self, node: ClusterNode, image: MetadataImage) -> None:
        known = self._images.setdefault(image.offset, image)
        if known is not image:
            same = (known.topics, known.brokers, known.features, known.next_producer_id)
            found = (image.topics, image.brokers, image.features, image.next_producer_id)
            assert same == found, f"Q8: another image at {image.offset} of node {node.id}"
