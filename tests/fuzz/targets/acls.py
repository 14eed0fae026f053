"""ACLs: requests that create, describe and delete them, records of a metadata log, and decisions.

An input is a list of pieces: a byte for the kind of the message, then the message. After each the
decisions of the index are those of a simple authorizer, and a deleted ACL leaves the others.
"""

from collections.abc import Iterator, Sequence
from random import Random

from kclient.broker.authorizer.acl_filter import filter_of, matches
from kclient.broker.authorizer.standard_authorizer import StandardAuthorizer
from kclient.broker.controller.acl_control import AclControl
from kclient.broker.controller.cluster_view import ClusterView
from kclient.broker.controller.partition_index import PartitionIndex
from kclient.broker.metadata.image_records import encoded_records
from kclient.broker.metadata.metadata_delta import MetadataDelta
from kclient.broker.metadata.metadata_image import MetadataImage, StandardAcl
from kclient.common.acls import AclOperation, AclPermissionType, PatternType, ResourceType
from kclient.network.authenticator import KafkaPrincipal
from kclient.protocol.message import Message
from kclient.protocol.messages.acls import (
    AclCreation,
    CreateAclsRequest,
    DeleteAclsFilter,
    DeleteAclsRequest,
    DescribeAclsRequest,
)
from kclient.protocol.messages.metadata_records import (
    AccessControlEntryRecord,
    MetadataRecord,
    RemoveAccessControlEntryRecord,
)
from tests.fuzz.message_mutation import TOPIC, MessageMutator
from tests.fuzz.mutation import spoil
from tests.fuzz.oracle import refusals
from tests.fuzz.pieces import mutate_pieces, packed, unpacked
from tests.fuzz.target import MEBIBYTE, Target

_VERSION = 3
_REQUESTS: tuple[type[Message], ...] = (CreateAclsRequest, DeleteAclsRequest, DescribeAclsRequest)
_RECORDS: tuple[type[MetadataRecord], ...] = (
    AccessControlEntryRecord,
    RemoveAccessControlEntryRecord,
)
_MAX_PIECES = 12
_MAX_CHECKED = 40
_SUBJECTS = (("alice", "10.0.0.1"), ("bob", "::1"), ("*", "10.0.0.1"))
_OPERATIONS = (AclOperation.READ, AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS)
_KINDS = (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER)
_IMPLIED_BY = {
    AclOperation.DESCRIBE: (
        AclOperation.READ,
        AclOperation.WRITE,
        AclOperation.DELETE,
        AclOperation.ALTER,
    ),
    AclOperation.DESCRIBE_CONFIGS: (AclOperation.ALTER_CONFIGS,),
}


class _Cluster:
    """Metadata with the ACLs of the messages so far."""

    def __init__(self) -> None:
        self.image = MetadataImage()
        self._ids = 0
        self._control = AclControl(self._new_id)

    def _new_id(self) -> bytes:
        self._ids += 1
        return self._ids.to_bytes(16)

    def handle(self, kind: int, body: bytes) -> None:
        """Handle a message."""
        if kind < len(_REQUESTS):
            self._request(_REQUESTS[kind].decode(body, _VERSION))
        else:
            record = _RECORDS[kind % len(_RECORDS)].decode(body, 0)
            assert isinstance(record, MetadataRecord)
            self._replay([record])

    def _request(self, request: Message) -> None:
        view = ClusterView(self.image, PartitionIndex(self.image), {})
        if isinstance(request, CreateAclsRequest):
            created = self._control.create_acls(view, request)
            assert len(created.response.results) == len(request.creations)
            self._replay(created.records)
        elif isinstance(request, DeleteAclsRequest):
            before = dict(self.image.acls)
            deleted = self._control.delete_acls(view, request)
            self._replay(deleted.records)
            gone = [before[record.id] for record in deleted.records]  # type: ignore[attr-defined]
            assert len(self.image.acls) == len(before) - len(gone)
            shown = sum(len(each.matching_acls) for each in deleted.response.filter_results)
            assert shown >= len(gone)
        elif isinstance(request, DescribeAclsRequest):
            wanted = filter_of(request)
            assert all(isinstance(matches(wanted, acl), bool) for acl in self.image.acls.values())

    def _replay(self, records: Sequence[MetadataRecord]) -> None:
        delta = MetadataDelta(self.image)
        for record in records:
            delta.replay(record)
        self.image = delta.apply(7)


def run(data: bytes) -> None:
    """Handle the messages; compare the decisions after each."""
    cluster = _Cluster()
    authorizer = StandardAuthorizer(
        lambda: cluster.image.acls, frozenset({"User:root"}), default_allow=False
    )
    for piece in unpacked(data)[:_MAX_PIECES]:
        if not piece:
            continue
        with refusals():
            cluster.handle(piece[0] % (len(_REQUESTS) + len(_RECORDS)), piece[1:])
        _check_decisions(authorizer, list(cluster.image.acls.values()))
    with refusals():
        again = MetadataDelta(MetadataImage())
        for value in encoded_records(cluster.image):
            again.replay(MetadataRecord.decode_framed(value))
        assert again.apply(7).acls == cluster.image.acls


def _check_decisions(authorizer: StandardAuthorizer, acls: list[StandardAcl]) -> None:
    names = {acl.resource_name for acl in acls[:_MAX_CHECKED]} | {TOPIC, "kafka-cluster"}
    for user, host in _SUBJECTS:
        for kind in _KINDS:
            for operation in _OPERATIONS:
                for name in names:
                    allowed = authorizer.authorize(
                        KafkaPrincipal("User", user), host, operation, kind, name
                    )
                    expected = _decision(acls, f"User:{user}", host, (operation, kind, name))
                    assert allowed == expected, (user, host, operation, kind, name)
                authorizer.authorize_by_resource_type(
                    KafkaPrincipal("User", user), host, operation, kind
                )


def _decision(
    acls: list[StandardAcl],
    principal: str,
    host: str,
    asked: tuple[AclOperation, ResourceType, str],
) -> bool:
    """Return the decision of the rules of Kafka, one after the other."""
    operation, kind, name = asked
    found = [
        acl
        for acl in acls
        if acl.resource_type == kind
        and (
            name.startswith(acl.resource_name)
            if acl.pattern_type == PatternType.PREFIXED
            else acl.resource_name in (name, "*")
        )
        and acl.principal in (principal, "User:*")
        and acl.host in ("*", host)
    ]
    denied = AclPermissionType.DENY
    if any(
        acl.permission_type == denied and acl.operation in (operation, AclOperation.ALL)
        for acl in found
    ):
        return False
    includes = (operation, AclOperation.ALL, *_IMPLIED_BY.get(operation, ()))
    return any(acl.permission_type != denied and acl.operation in includes for acl in found)


# --- inputs


def _piece(kind: int, message: Message) -> bytes:
    version = _VERSION if kind < len(_REQUESTS) else 0
    return bytes([kind]) + message.encode_bytes(version)


def _creation(
    name: str = TOPIC,
    *,
    pattern: PatternType = PatternType.LITERAL,
    operation: AclOperation = AclOperation.READ,
    permission: AclPermissionType = AclPermissionType.ALLOW,
    kind: ResourceType = ResourceType.TOPIC,
    host: str = "*",
) -> AclCreation:
    return AclCreation(
        resource_type=kind,
        resource_name=name,
        resource_pattern_type=pattern,
        principal="User:alice",
        host=host,
        operation=operation,
        permission_type=permission,
    )


_CREATIONS = (
    _creation(),
    _creation(permission=AclPermissionType.DENY),
    _creation("fu", pattern=PatternType.PREFIXED, operation=AclOperation.ALL),
    _creation("*", operation=AclOperation.WRITE, host="10.0.0.1"),
    _creation("kafka-cluster", kind=ResourceType.CLUSTER, operation=AclOperation.ALTER_CONFIGS),
)
_DELETION = DeleteAclsFilter(
    resource_type_filter=ResourceType.TOPIC,
    resource_name_filter=TOPIC,
    pattern_type_filter=PatternType.LITERAL,
    operation=AclOperation.ANY,
    permission_type=AclPermissionType.DENY,
)
_EVERYTHING = DeleteAclsFilter(
    resource_type_filter=1, pattern_type_filter=1, operation=1, permission_type=1
)
_DESCRIPTION = DescribeAclsRequest(
    resource_type_filter=1, pattern_type_filter=1, operation=1, permission_type=1
)
_RECORD = AccessControlEntryRecord(
    id=bytes(15) + b"\x63",
    resource_type=2,
    resource_name=TOPIC,
    pattern_type=3,
    principal="User:alice",
    host="*",
    operation=3,
    permission_type=3,
)


def _good() -> list[bytes]:
    return [
        *(_piece(0, CreateAclsRequest(creations=[creation])) for creation in _CREATIONS),
        _piece(0, CreateAclsRequest(creations=list(_CREATIONS))),
        _piece(1, DeleteAclsRequest(filters=[_DELETION])),
        _piece(1, DeleteAclsRequest(filters=[_DELETION, _EVERYTHING])),
        _piece(2, _DESCRIPTION),
        _piece(3, _RECORD),
        _piece(4, RemoveAccessControlEntryRecord(id=_RECORD.id)),
    ]


def seeds() -> Iterator[bytes]:
    """Yield each message alone, after the others, and twice."""
    good = _good()
    for message in good:
        yield packed([message])
        yield packed([good[5], message, message])
    yield packed(good)


_MUTATOR = MessageMutator(("*", "User:alice", "User:*", "kafka-cluster", "10.0.0.1", "::1", "fu"))


def mutate(data: bytes, random: Random) -> bytes:
    """Change a message, or add one."""
    if random.random() < 0.3:
        return packed([*unpacked(data), random.choice(_good())])
    return mutate_pieces(data, random, _mutated)


def _mutated(piece: bytes, random: Random) -> bytes:
    if not piece:
        return spoil(piece, random)
    kind = piece[0] % (len(_REQUESTS) + len(_RECORDS))
    message = (*_REQUESTS, *_RECORDS)[kind]
    version = _VERSION if kind < len(_REQUESTS) else 0
    if random.random() < 0.1:
        return bytes([kind]) + _MUTATOR.made(message, version, random)
    return bytes([kind]) + _MUTATOR.mutated(message, version, piece[1:], random)


TARGET = Target(run, seeds, mutate, lambda size: 4 * MEBIBYTE + 100 * size)
