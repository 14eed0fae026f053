"""Control records of the metadata log and of its snapshots.

The key of a control record has its type: `ControlRecordType`.
"""

from kclient.protocol.fields import Struct, array, int16, int32, int64, string, struct, uint16, uuid
from kclient.protocol.message import Message


class KRaftVersionRecord(Message, versions="0", flexible="0+"):
    """Level of kraft.version."""

    version: int = int16()
    k_raft_version: int = int16()


class LeaderChangeVoter(Struct):
    """A voter."""

    voter_id: int = int32()
    voter_directory_id: bytes = uuid("1+")


class LeaderChangeMessage(Message, versions="0-1", flexible="0+"):
    """First record of an epoch: its leader, the voters and those that voted for it."""

    version: int = int16()
    leader_id: int = int32()
    voters: list[LeaderChangeVoter] = array(LeaderChangeVoter)
    granting_voters: list[LeaderChangeVoter] = array(LeaderChangeVoter)


class SnapshotFooterRecord(Message, versions="0", flexible="0+"):
    """Last record of a snapshot."""

    version: int = int16()


class SnapshotHeaderRecord(Message, versions="0", flexible="0+"):
    """First record of a snapshot."""

    version: int = int16()
    last_contained_log_timestamp: int = int64()


class VotersEndpoint(Struct):
    """Address of a voter at a listener."""

    name: str = string(map_key=True)
    host: str = string()
    port: int = uint16()


class KRaftVersionFeature(Struct):
    """Levels of kraft.version that a voter supports."""

    min_supported_version: int = int16()
    max_supported_version: int = int16()


class VotersVoter(Struct):
    """A voter with its addresses."""

    voter_id: int = int32()
    voter_directory_id: bytes = uuid()
    endpoints: list[VotersEndpoint] = array(VotersEndpoint)
    k_raft_version_feature: KRaftVersionFeature = struct(KRaftVersionFeature)


class VotersRecord(Message, versions="0", flexible="0+"):
    """The voters from its offset on."""

    version: int = int16()
    voters: list[VotersVoter] = array(VotersVoter)
