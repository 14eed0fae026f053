"""Index of ACLs by resource, with the decision on one operation."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from ipaddress import ip_address
from typing import NamedTuple

from kclient.broker.metadata.metadata_image import StandardAcl
from kclient.common.acls import (
    WILDCARD,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
    member_of,
)

IMPLIED_BY: Mapping[AclOperation, frozenset[AclOperation]] = {
    AclOperation.DESCRIBE: frozenset(
        {AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER}
    ),
    AclOperation.DESCRIBE_CONFIGS: frozenset({AclOperation.ALTER_CONFIGS}),
}
"""Operations whose ALLOW includes another one; a DENY includes none."""

_NOTHING: tuple[StandardAcl, ...] = ()
_EVERY_USER = "User:*"
_OTHER_NAME = "hardcode"
_CACHED = 10_000


class Decision(NamedTuple):
    """Decision on one operation.

    Attributes:
        is_allowed: Whether it is allowed.
        rule: The rule that decided, for the log: a text of the ACL or the name of a default.
    """

    is_allowed: bool
    rule: str


class Subject(NamedTuple):
    """Who wants to do something.

    Attributes:
        principal: Principal as text, ``User:alice``.
        host: IP address of the client.
    """

    principal: str
    host: str


class AclIndex:
    """ACLs at one time (Kafka: StandardAuthorizerData). It is immutable, except for its cache.

    Any thread may use it: entries of the cache are replaced as a whole.
    """

    def __init__(self, acls: Iterable[StandardAcl], *, default_allow: bool) -> None:
        """Build the index.

        Args:
            acls: The ACLs.
            default_allow: ``allow.everyone.if.no.acl.found``.
        """
        self._default = Decision(
            is_allowed=default_allow, rule="DefaultAllow" if default_allow else "DefaultDeny"
        )
        literal: dict[tuple[int, str], list[StandardAcl]] = defaultdict(list)
        prefixed: dict[tuple[int, str], list[StandardAcl]] = defaultdict(list)
        lengths: dict[int, set[int]] = defaultdict(set)
        for acl in acls:
            key = (acl.resource_type, acl.resource_name)
            if acl.pattern_type == PatternType.PREFIXED:
                prefixed[key].append(acl)
                lengths[acl.resource_type].add(len(acl.resource_name))
            else:
                literal[key].append(acl)
        self._literal = dict(literal)
        self._prefixed = dict(prefixed)
        self._lengths = {kind: sorted(found) for kind, found in lengths.items()}
        self._cache: dict[tuple[Subject, AclOperation, ResourceType, str], Decision] = {}

    def decide(
        self, subject: Subject, operation: AclOperation, kind: ResourceType, name: str
    ) -> Decision:
        """Decide on an operation: DENY before ALLOW, and the default only without any ACL."""
        key = (subject, operation, kind, name)
        decision = self._cache.get(key)
        if decision is None:
            decision = self._decide(subject, operation, self._matching(kind, name))
            if len(self._cache) >= _CACHED:
                self._cache = {}
            self._cache[key] = decision
        return decision

    def allows_any(self, subject: Subject, operation: AclOperation, kind: ResourceType) -> bool:
        """Return whether there is a resource of a type on which an operation is allowed.

        As in Kafka (Authorizer.authorizeByResourceType): what is allowed on a name without ACLs of
        its own is allowed; then a DENY of every name denies, an ALLOW of every name allows, and so
        does another ALLOW that no DENY covers.
        """
        if self.decide(subject, operation, kind, _OTHER_NAME).is_allowed:
            return True
        relevant = [
            acl
            for acl in self._of_type(kind)
            if _concerns(acl, subject) and acl.operation in (operation, AclOperation.ALL)
        ]
        denied = [acl for acl in relevant if acl.permission_type == AclPermissionType.DENY]
        if any(_is_for_all(acl) for acl in denied):
            return False
        allowed = [acl for acl in relevant if acl.permission_type == AclPermissionType.ALLOW]
        return any(
            _is_for_all(acl) or not any(_covers(other, acl) for other in denied) for acl in allowed
        )

    def _matching(self, kind: ResourceType, name: str) -> Iterator[StandardAcl]:
        yield from self._literal.get((kind, name), _NOTHING)
        if name != WILDCARD:
            yield from self._literal.get((kind, WILDCARD), _NOTHING)
        for length in self._lengths.get(kind, ()):
            if length > len(name):
                return
            yield from self._prefixed.get((kind, name[:length]), _NOTHING)

    def _of_type(self, kind: ResourceType) -> Iterator[StandardAcl]:
        for patterns in (self._literal, self._prefixed):
            for (of_kind, _), acls in patterns.items():
                if of_kind == kind:
                    yield from acls

    def _decide(
        self, subject: Subject, operation: AclOperation, matching: Iterable[StandardAcl]
    ) -> Decision:
        includes = {operation, AclOperation.ALL} | IMPLIED_BY.get(operation, frozenset())
        allowed: StandardAcl | None = None
        has_acl = False
        for acl in matching:
            has_acl = True
            if not _concerns(acl, subject):
                continue
            if acl.permission_type == AclPermissionType.DENY:
                if acl.operation in (operation, AclOperation.ALL):
                    return Decision(is_allowed=False, rule=f"MatchingAcl({described(acl)})")
            elif acl.operation in includes:
                allowed = allowed or acl
        if allowed is not None:
            return Decision(is_allowed=True, rule=f"MatchingAcl({described(allowed)})")
        if has_acl:
            return Decision(is_allowed=False, rule="DefaultDeny")
        return self._default


def normalized_host(host: str) -> str:
    """Return an IP address in one form, an IPv4-mapped one as IPv4; any other text as it is."""
    try:
        address = ip_address(host)
    except ValueError:
        return host
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address)


def described(acl: StandardAcl) -> str:
    """Return an ACL as text, for the log."""
    kind, pattern = (
        member_of(ResourceType, acl.resource_type),
        member_of(PatternType, acl.pattern_type),
    )
    operation = member_of(AclOperation, acl.operation)
    permission = member_of(AclPermissionType, acl.permission_type)
    return (
        f"{permission.name} {acl.principal!r:.100} {operation.name} on "
        f"{kind.name}:{pattern.name}:{acl.resource_name!r:.260} from {acl.host!r:.60}"
    )


def _concerns(acl: StandardAcl, subject: Subject) -> bool:
    return acl.principal in (subject.principal, _EVERY_USER) and (
        acl.host == WILDCARD or normalized_host(acl.host) == subject.host
    )


def _is_for_all(acl: StandardAcl) -> bool:
    return acl.pattern_type == PatternType.LITERAL and acl.resource_name == WILDCARD


def _covers(denied: StandardAcl, allowed: StandardAcl) -> bool:
    """Return whether every resource of an ALLOW is one of a DENY."""
    if denied.pattern_type == PatternType.PREFIXED:
        return allowed.resource_name.startswith(denied.resource_name)
    return allowed.pattern_type == PatternType.LITERAL and (
        allowed.resource_name == denied.resource_name
    )
