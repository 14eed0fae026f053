"""Access rules: who may do what with which resource (KIP-140, KIP-290).

The numbers of the enumerations are those of requests and metadata records.
"""

from enum import IntEnum
from typing import NamedTuple, TypeVar

WILDCARD = "*"
"""Resource name for all resources of a type, and host for all hosts."""

CLUSTER_NAME = "kafka-cluster"
"""Resource name of the cluster."""


class ResourceType(IntEnum):
    """Kind of a resource (Kafka: ResourceType)."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """Meaning of a resource name (Kafka: PatternType).

    ANY and MATCH are for filters. MATCH finds each rule that applies to the resource of the name.
    """

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class AclOperation(IntEnum):
    """Operation on a resource (Kafka: AclOperation)."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class AclPermissionType(IntEnum):
    """Effect of a rule (Kafka: AclPermissionType). DENY has precedence over ALLOW."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


E = TypeVar("E", bound=IntEnum)


def member_of(kind: type[E], code: int) -> E:
    """Return the member of a received code; UNKNOWN for one of a newer version."""
    try:
        return kind(code)
    except ValueError:
        return kind(0)


class ResourcePatternFilter(NamedTuple):
    """Condition on the resources of a rule (Kafka: ResourcePatternFilter).

    Attributes:
        resource_type: Kind of the resources.
        name: Name of the pattern or, with MATCH, of a resource; None for any.
        pattern_type: Meaning of the name.
    """

    resource_type: ResourceType = ResourceType.ANY
    name: str | None = None
    pattern_type: PatternType = PatternType.ANY


class AccessControlEntryFilter(NamedTuple):
    """Condition on the other parts of a rule (Kafka: AccessControlEntryFilter).

    Attributes:
        principal: Principal, such as "User:alice"; None for any.
        host: Host; None for any.
        operation: Operation.
        permission_type: Effect.
    """

    principal: str | None = None
    host: str | None = None
    operation: AclOperation = AclOperation.ANY
    permission_type: AclPermissionType = AclPermissionType.ANY


class AclBindingFilter(NamedTuple):
    """Condition on rules (Kafka: AclBindingFilter); by default every rule meets it."""

    pattern_filter: ResourcePatternFilter = ResourcePatternFilter()
    entry_filter: AccessControlEntryFilter = AccessControlEntryFilter()


class ResourcePattern(NamedTuple):
    """Resources to which a rule applies (Kafka: ResourcePattern).

    Attributes:
        resource_type: Kind of the resources.
        name: Their name, the beginning of their names with PREFIXED, or "*" for all.
        pattern_type: LITERAL or PREFIXED.
    """

    resource_type: ResourceType
    name: str
    pattern_type: PatternType = PatternType.LITERAL

    def __str__(self) -> str:
        kind = self.resource_type.name
        prefix = "PREFIXED " if self.pattern_type is PatternType.PREFIXED else ""
        return f"{prefix}{kind} {self.name!r:.80}"


class AccessControlEntry(NamedTuple):
    """Permission of a principal (Kafka: AccessControlEntry).

    Attributes:
        principal: Type and name, such as "User:alice"; "User:*" for all users.
        host: Address from which the principal connects, "*" for any.
        operation: Operation.
        permission_type: ALLOW or DENY.
    """

    principal: str
    host: str
    operation: AclOperation
    permission_type: AclPermissionType

    def __str__(self) -> str:
        return (
            f"{self.permission_type.name} {self.operation.name} by {self.principal!r:.80} from "
            f"{self.host!r:.80}"
        )


class AclBinding(NamedTuple):
    """Rule: resources, and a permission on them (Kafka: AclBinding)."""

    pattern: ResourcePattern
    entry: AccessControlEntry

    def to_filter(self) -> AclBindingFilter:
        """Return the condition that this rule alone meets."""
        return AclBindingFilter(
            ResourcePatternFilter(*self.pattern), AccessControlEntryFilter(*self.entry)
        )

    def __str__(self) -> str:
        return f"{self.entry} on {self.pattern}"


_CONFIGS = frozenset({AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS})

SUPPORTED_OPERATIONS = {
    ResourceType.TOPIC: _CONFIGS
    | {
        AclOperation.READ,
        AclOperation.WRITE,
        AclOperation.CREATE,
        AclOperation.DESCRIBE,
        AclOperation.DELETE,
        AclOperation.ALTER,
    },
    ResourceType.GROUP: _CONFIGS | {AclOperation.READ, AclOperation.DESCRIBE, AclOperation.DELETE},
    ResourceType.CLUSTER: _CONFIGS
    | {
        AclOperation.CREATE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
        AclOperation.CLUSTER_ACTION,
        AclOperation.IDEMPOTENT_WRITE,
    },
    ResourceType.TRANSACTIONAL_ID: frozenset(
        {AclOperation.DESCRIBE, AclOperation.WRITE, AclOperation.TWO_PHASE_COMMIT}
    ),
    ResourceType.DELEGATION_TOKEN: frozenset({AclOperation.DESCRIBE}),
    ResourceType.USER: frozenset({AclOperation.CREATE_TOKENS, AclOperation.DESCRIBE_TOKENS}),
}
"""Operations that a resource of a type has, ALL apart (Kafka: AclEntry.supportedOperations)."""
