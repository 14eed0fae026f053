"""Conditions on ACLs, as DescribeAcls and DeleteAcls have them."""

from kclient.broker.metadata.metadata_image import StandardAcl
from kclient.common.acls import (
    WILDCARD,
    AccessControlEntryFilter,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePatternFilter,
    ResourceType,
    member_of,
)
from kclient.common.broker_errors import InvalidRequestError
from kclient.protocol.messages.acls import DeleteAclsFilter, DescribeAclsRequest


def filter_of(given: DescribeAclsRequest | DeleteAclsFilter) -> AclBindingFilter:
    """Return the condition of a request.

    Raises:
        InvalidRequestError: A code is unknown.
    """
    resource_type = member_of(ResourceType, given.resource_type_filter)
    pattern_type = member_of(PatternType, given.pattern_type_filter)
    operation = member_of(AclOperation, given.operation)
    permission_type = member_of(AclPermissionType, given.permission_type)
    if not (resource_type and pattern_type and operation and permission_type):
        raise InvalidRequestError(f"The filter contains an unknown element: {given!r:.400}")
    return AclBindingFilter(
        ResourcePatternFilter(resource_type, given.resource_name_filter, pattern_type),
        AccessControlEntryFilter(
            given.principal_filter, given.host_filter, operation, permission_type
        ),
    )


def matches(wanted: AclBindingFilter, acl: StandardAcl) -> bool:
    """Return whether an ACL meets a condition."""
    entry = wanted.entry_filter
    return (
        entry.operation in (AclOperation.ANY, acl.operation)
        and entry.permission_type in (AclPermissionType.ANY, acl.permission_type)
        and entry.principal in (None, acl.principal)
        and entry.host in (None, acl.host)
        and _matches_pattern(wanted.pattern_filter, acl)
    )


def _matches_pattern(wanted: ResourcePatternFilter, acl: StandardAcl) -> bool:
    if wanted.resource_type not in (ResourceType.ANY, acl.resource_type):
        return False
    if wanted.pattern_type not in (PatternType.ANY, PatternType.MATCH, acl.pattern_type):
        return False
    if wanted.name is None or wanted.name == acl.resource_name:
        return True
    if wanted.pattern_type is not PatternType.MATCH:
        return False
    if acl.pattern_type == PatternType.PREFIXED:
        return wanted.name.startswith(acl.resource_name)
    return acl.resource_name == WILDCARD
