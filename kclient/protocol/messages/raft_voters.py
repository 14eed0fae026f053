"""Changes of voters (KIP-853): AddRaftVoter (80), RemoveRaftVoter (81), UpdateRaftVoter (82)."""

from kclient.protocol.api_keys import ApiKey
from kclient.protocol.fields import (
    Struct,
    array,
    boolean,
    int16,
    int32,
    string,
    struct,
    uint16,
    uuid,
)
from kclient.protocol.message import Request, Response


class AddRaftVoterResponse(Response, versions="0-1", flexible="0+"):
    """The outcome."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", ignorable=True)


class AddRaftVoterListener(Struct):
    """Address of a voter at a listener."""

    name: str = string(map_key=True)
    host: str = string()
    port: int = uint16()


class AddRaftVoterRequest(
    Request,
    api_key=ApiKey.ADD_RAFT_VOTER,
    response=AddRaftVoterResponse,
    versions="0-1",
    flexible="0+",
):
    """Adds a controller to the voters."""

    cluster_id: str | None = string(nullable="0+")
    timeout_ms: int = int32()
    voter_id: int = int32()
    voter_directory_id: bytes = uuid()
    listeners: list[AddRaftVoterListener] = array(AddRaftVoterListener)
    ack_when_committed: bool = boolean("1+", default=True)


class RemoveRaftVoterResponse(Response, versions="0", flexible="0+"):
    """The outcome."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", ignorable=True)


class RemoveRaftVoterRequest(
    Request,
    api_key=ApiKey.REMOVE_RAFT_VOTER,
    response=RemoveRaftVoterResponse,
    versions="0",
    flexible="0+",
):
    """Removes a controller from the voters."""

    cluster_id: str | None = string(nullable="0+")
    voter_id: int = int32()
    voter_directory_id: bytes = uuid()


class UpdateRaftVoterCurrentLeader(Struct):
    """Leader with its address."""

    leader_id: int = int32(default=-1)
    leader_epoch: int = int32(default=-1)
    host: str = string()
    port: int = int32()


class UpdateRaftVoterResponse(Response, versions="0", flexible="0+"):
    """The outcome, with the leader."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    current_leader: UpdateRaftVoterCurrentLeader = struct(UpdateRaftVoterCurrentLeader, tag=0)


class UpdateRaftVoterListener(Struct):
    """Address of a voter at a listener."""

    name: str = string(map_key=True)
    host: str = string()
    port: int = uint16()


class KRaftVersionFeature(Struct):
    """Levels of kraft.version that a voter supports."""

    min_supported_version: int = int16()
    max_supported_version: int = int16()


class UpdateRaftVoterRequest(
    Request,
    api_key=ApiKey.UPDATE_RAFT_VOTER,
    response=UpdateRaftVoterResponse,
    versions="0",
    flexible="0+",
):
    """Updates the addresses and the supported kraft.version of a voter."""

    cluster_id: str | None = string(nullable="0+")
    current_leader_epoch: int = int32()
    voter_id: int = int32()
    voter_directory_id: bytes = uuid()
    listeners: list[UpdateRaftVoterListener] = array(UpdateRaftVoterListener)
    k_raft_version_feature: KRaftVersionFeature = struct(KRaftVersionFeature)
