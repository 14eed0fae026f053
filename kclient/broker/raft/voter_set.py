"""Voters of the quorum: their ids, directory ids, endpoints and versions (Kafka: VoterSet)."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from kclient.common.errors import ConfigError
from kclient.common.uuids import ZERO_UUID

NO_DIRECTORY = ZERO_UUID
"""Directory id of a voter of kraft.version 0, which has none."""


class ReplicaKey(NamedTuple):
    """Replica of the metadata log (Kafka: ReplicaKey, KIP-853).

    Attributes:
        id: Node id.
        directory_id: Directory id, 16 bytes; zero if unknown.
    """

    id: int
    directory_id: bytes = NO_DIRECTORY


class Endpoint(NamedTuple):
    """Host and port of a listener."""

    host: str
    port: int


Endpoints = Mapping[str, Endpoint]
"""Endpoint by listener name, such as ``CONTROLLER``."""


class SupportedVersions(NamedTuple):
    """Versions of the feature kraft.version that a node supports."""

    lowest: int = 0
    highest: int = 1


STATIC_VERSIONS = SupportedVersions(0, 0)
"""Versions of a voter that is known by its configuration alone."""


@dataclass(frozen=True, slots=True)
class VoterNode:
    """One voter.

    Attributes:
        key: Id and directory id.
        endpoints: Endpoints by listener name.
        versions: Supported kraft.version.
    """

    key: ReplicaKey
    endpoints: Endpoints
    versions: SupportedVersions = STATIC_VERSIONS


@dataclass(frozen=True)
class VoterSet:
    """Immutable set of voters by id.

    Attributes:
        voters: The voters by id, in ascending order of id.
    """

    voters: Mapping[int, VoterNode] = field(default_factory=dict)

    @staticmethod
    def of(voters: Iterable[VoterNode]) -> "VoterSet":
        """Return the set of the given voters."""
        ordered = sorted(voters, key=lambda voter: voter.key.id)
        return VoterSet({voter.key.id: voter for voter in ordered})

    @staticmethod
    def parse(text: str, listener: str) -> "VoterSet":
        """Parse ``controller.quorum.voters``: ``id@host:port`` separated by commas.

        Raises:
            ConfigError: The text has another form, or names an id twice.
        """
        found: dict[int, VoterNode] = {}
        for entry in filter(None, (part.strip() for part in text.split(","))):
            name, _, address = entry.partition("@")
            host, _, port = address.rpartition(":")
            is_port = port.isdecimal() and 0 < int(port) < 1 << 16
            if not (name.isdecimal() and host and is_port) or int(name) in found:
                raise ConfigError(
                    f"controller.quorum.voters: got {entry!r:.80}, expected id@host:port, "
                    "each id once"
                )
            endpoint = Endpoint(host.strip("[]"), int(port))
            found[int(name)] = VoterNode(ReplicaKey(int(name)), {listener: endpoint})
        return VoterSet.of(found.values())

    def __len__(self) -> int:
        return len(self.voters)

    def __iter__(self) -> Iterator[VoterNode]:
        return iter(self.voters.values())

    def __bool__(self) -> bool:
        return bool(self.voters)

    @property
    def ids(self) -> frozenset[int]:
        """Ids of the voters."""
        return frozenset(self.voters)

    @property
    def keys(self) -> list[ReplicaKey]:
        """Keys of the voters, in ascending order of id."""
        return [voter.key for voter in self]

    @property
    def majority(self) -> int:
        """Number of voters that are a majority."""
        return len(self) // 2 + 1

    def is_voter(self, replica: ReplicaKey) -> bool:
        """Return whether a replica is a voter.

        A voter with a directory id has to match exactly; without one, the id decides.
        """
        voter = self.voters.get(replica.id)
        if voter is None:
            return False
        known = voter.key.directory_id
        return known in {NO_DIRECTORY, replica.directory_id}

    def is_only_voter(self, replica: ReplicaKey) -> bool:
        """Return whether a replica is the only voter."""
        return len(self) == 1 and self.is_voter(replica)

    def node(self, voter_id: int) -> VoterNode | None:
        """Return the voter of an id, or None."""
        return self.voters.get(voter_id)

    def endpoint(self, voter_id: int, listener: str) -> Endpoint | None:
        """Return a voter's endpoint at a listener, or None."""
        voter = self.voters.get(voter_id)
        return None if voter is None else voter.endpoints.get(listener)

    def with_voter(self, voter: VoterNode) -> "VoterSet | None":
        """Return the set with one more voter; None if its id is in the set."""
        if voter.key.id in self.voters:
            return None
        return VoterSet.of([*self, voter])

    def without_voter(self, replica: ReplicaKey) -> "VoterSet | None":
        """Return the set without a voter; None if it is not in the set or the last one."""
        voter = self.voters.get(replica.id)
        if voter is None or voter.key != replica or len(self) == 1:
            return None
        return VoterSet.of(each for each in self if each is not voter)

    def with_updated(self, voter: VoterNode) -> "VoterSet | None":
        """Return the set with a voter's new endpoints and versions; None if it is no voter."""
        if not self.is_voter(voter.key):
            return None
        return VoterSet.of([*(each for each in self if each.key.id != voter.key.id), voter])

    def has_overlapping_majority(self, other: "VoterSet") -> bool:
        """Return whether any majorities of both sets have a voter in common.

        That is the case if they differ by at most one voter.
        """
        mine, others = set(self.keys), set(other.keys)
        return len(mine - others) <= 1 and len(others - mine) <= 1
