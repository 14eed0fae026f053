"""Fetches of followers and observers: records, truncation, snapshots (KIP-595, KIP-630).

A node that knows no leader fetches from bootstrap servers and voters to find it.
"""

import logging
from math import inf

from kclient.broker.raft.elections import accept_response
from kclient.broker.raft.epoch_state import FollowerState, UnattachedState
from kclient.broker.raft.raft_context import RaftContext
from kclient.broker.raft.raft_messages import fetch_request, fetch_snapshot_request
from kclient.broker.raft.raft_types import OffsetAndEpoch, RaftNode
from kclient.broker.raft.request_manager import Outcome
from kclient.broker.raft.snapshots import RawSnapshotWriter
from kclient.common.files import FileSlice
from kclient.protocol.messages.fetch import FetchResponse, PartitionData
from kclient.protocol.messages.quorum import (
    FetchSnapshotResponse,
    FetchSnapshotResponsePartitionSnapshot,
)

_log = logging.getLogger(__name__)


class FollowerFetch:
    """Fetches of one node.

    Args:
        context: State of the node.
    """

    def __init__(self, context: RaftContext) -> None:
        self._context = context
        self._quorum = context.quorum
        self._log = context.log
        self._identity = context.identity
        self._requests = context.requests
        self._control = context.control
        self._download: RawSnapshotWriter | None = None
        context.on_transition.append(self.abandon_download)

    def abandon_download(self) -> None:
        """Discard a snapshot that is not complete."""
        if self._download is not None:
            self._download.close()
            self._download = None

    def poll(self, now_ms: float) -> float:
        """Send the next fetch if one is due; return when the next one may be."""
        state = self._quorum.state
        if isinstance(state, FollowerState):
            return self._poll_follower(state, now_ms)
        if isinstance(state, UnattachedState):
            return self._fetch_from_bootstrap(now_ms)
        return inf

    def _poll_follower(self, state: FollowerState, now_ms: float) -> float:
        requests = self._requests
        leader = self.leader_node(state)
        if leader is None:
            return self._fetch_from_bootstrap(now_ms)
        if requests.is_backing_off(leader, now_ms):
            # The leader may be another one by now.
            self._fetch_from_bootstrap(now_ms)
        elif requests.is_ready(leader, now_ms):
            if self._download is not None:
                self._send_fetch_snapshot(leader, self._download, now_ms)
            else:
                self._send_fetch(leader, now_ms)
        return requests.ready_ms(leader)

    def leader_node(self, state: FollowerState) -> RaftNode | None:
        """Return the destination of requests to the leader."""
        endpoint = state.endpoints.get(self._identity.listener)
        if endpoint is None:
            return self._context.voter_node(state.leader_id)
        return RaftNode(state.leader_id, endpoint.host, endpoint.port)

    def _fetch_from_bootstrap(self, now_ms: float) -> float:
        requests = self._requests
        requests.bootstrap = self._context.bootstrap_nodes()
        node = requests.ready_bootstrap(now_ms)
        if node is not None:
            self._send_fetch(node, now_ms)
        return max(requests.bootstrap_ready_ms(now_ms), now_ms + 1)

    def _send_fetch(self, node: RaftNode, now_ms: float) -> None:
        context = self._context
        epoch = context.quorum.epoch
        request = fetch_request(
            context.identity.sender,
            epoch,
            context.log.end,
            context.log.high_watermark,
            context.config.fetch_max_wait_ms,
            context.config.fetch_max_bytes,
        )
        offset = context.log.end_offset
        context.requests.send(
            node, request, lambda *outcome: self._on_fetch(node, offset, *outcome), now_ms
        )

    def _on_fetch(self, node: RaftNode, offset: int, outcome: Outcome, now_ms: float) -> None:
        context = self._context
        before = context.quorum.state
        head = accept_response(context, outcome, now_ms)
        state = context.quorum.state
        if head is None and state is not before:
            return  # a leader was found: it is asked at once
        if (
            head is None
            or head.error_code
            or not isinstance(outcome, FetchResponse)
            or not isinstance(state, FollowerState)
            or head.leader != context.quorum.leader
        ):
            context.requests.back_off(node, now_ms)
            return
        state.deadline_ms = now_ms + context.config.fetch_timeout_ms
        state.has_fetched = True
        if offset != context.log.end_offset:
            return  # another fetch, from a bootstrap server, was faster
        self._apply(outcome.responses[0].partitions[0], node, now_ms)

    def _apply(self, data: PartitionData, node: RaftNode, now_ms: float) -> None:
        context = self._context
        if data.diverging_epoch.epoch >= 0:
            diverging = OffsetAndEpoch(data.diverging_epoch.end_offset, data.diverging_epoch.epoch)
            end_offset = context.log.truncate_to_end_offset(diverging)
            context.control.truncate_to(end_offset)
            _log.info("truncated the metadata log to %d: %s", end_offset, diverging)
            return
        if data.snapshot_id.epoch >= 0:
            self._start_download(
                OffsetAndEpoch(data.snapshot_id.end_offset, data.snapshot_id.epoch)
            )
            return
        records = data.records
        if records:
            content = records.read() if isinstance(records, FileSlice) else records
            if not context.log.append_as_follower(content, context.quorum.epoch):
                context.requests.back_off(node, now_ms)
            context.control.update()
        self._update_high_watermark(data.high_watermark)

    def _update_high_watermark(self, offset: int) -> None:
        """Take over the leader's high watermark, as far as the own log reaches."""
        log = self._log
        offset = min(offset, log.end_offset)
        if offset > (-1 if log.high_watermark is None else log.high_watermark) and offset >= 0:
            log.update_high_watermark(offset)

    def _start_download(self, snapshot_id: OffsetAndEpoch) -> None:
        log = self._log
        self.abandon_download()
        if snapshot_id in log.snapshots:
            self._use_snapshot(snapshot_id)
        else:
            self._download = log.snapshots.write(snapshot_id)

    def _use_snapshot(self, snapshot_id: OffsetAndEpoch) -> None:
        self._log.truncate_to_snapshot(snapshot_id)
        self._control.load()
        _log.info("the metadata log starts at snapshot %s", snapshot_id)

    def _send_fetch_snapshot(
        self, node: RaftNode, download: RawSnapshotWriter, now_ms: float
    ) -> None:
        context = self._context
        request = fetch_snapshot_request(
            context.identity.sender,
            context.quorum.epoch,
            download.snapshot_id,
            download.size_in_bytes,
            context.config.fetch_snapshot_max_bytes,
        )
        context.requests.send(
            node,
            request,
            lambda *outcome: self._on_fetch_snapshot(node, download, *outcome),
            now_ms,
        )

    def _on_fetch_snapshot(
        self, node: RaftNode, download: RawSnapshotWriter, outcome: Outcome, now_ms: float
    ) -> None:
        context = self._context
        head = accept_response(context, outcome, now_ms)
        state = context.quorum.state
        if (
            head is None
            or not isinstance(outcome, FetchSnapshotResponse)
            or not isinstance(state, FollowerState)
            or head.leader != context.quorum.leader
            or download is not self._download
        ):
            context.requests.back_off(node, now_ms)
            return
        if head.error_code:
            # The leader removed the snapshot; the next fetch names another one.
            _log.info("snapshot %s: error %d", download.snapshot_id, head.error_code)
            self.abandon_download()
            context.requests.back_off(node, now_ms)
            return
        state.deadline_ms = now_ms + context.config.fetch_timeout_ms
        self._append_chunk(download, outcome.topics[0].partitions[0])

    def _append_chunk(
        self, download: RawSnapshotWriter, part: FetchSnapshotResponsePartitionSnapshot
    ) -> None:
        snapshot_id = OffsetAndEpoch(part.snapshot_id.end_offset, part.snapshot_id.epoch)
        if snapshot_id != download.snapshot_id or part.position != download.size_in_bytes:
            _log.warning("snapshot %s: got another position", download.snapshot_id)
            self.abandon_download()
            return
        records = part.unaligned_records
        download.append(records.read() if isinstance(records, FileSlice) else records)
        if download.size_in_bytes >= part.size:
            download.freeze()
            self._download = None
            self._use_snapshot(snapshot_id)
