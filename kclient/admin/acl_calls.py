"""Admin calls for access rules."""

from collections.abc import Iterable

from kclient.admin.requester import Requester, item_error
from kclient.admin.results import Outcomes, Results, raising_if_single
from kclient.admin.security_arguments import (
    check_acl_filter,
    check_acl_filters,
    check_bindings,
)
from kclient.client.client_request import SimpleBuilder
from kclient.common.acls import (
    AccessControlEntry,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
    member_of,
)
from kclient.common.broker_errors import SecurityDisabledError, error_for_code
from kclient.common.errors import KafkaError, ProtocolError
from kclient.common.waiting import Steps
from kclient.protocol.messages.acls import (
    AclCreation,
    AclDescription,
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResponse,
)

_ANY_ACL = AclBindingFilter()


def describe_acls(
    requester: Requester, wanted: AclBindingFilter = _ANY_ACL, *, timeout: float | None = None
) -> Steps[list[AclBinding]]:
    """Return access rules (DescribeAcls, KIP-140, KIP-290).

    Args:
        wanted: Condition on the rules; by default every rule.
        timeout: Timeout in seconds.

    Raises:
        SecurityDisabledError: The broker has no authorizer.
        ClusterAuthorizationError: The client may not DESCRIBE the cluster.
    """
    pattern, entry = check_acl_filter(wanted)
    requester.limit(timeout)
    request = DescribeAclsRequest(
        resource_type_filter=pattern.resource_type,
        resource_name_filter=pattern.name,
        pattern_type_filter=pattern.pattern_type,
        principal_filter=entry.principal,
        host_filter=entry.host,
        operation=entry.operation,
        permission_type=entry.permission_type,
    )

    def read(response: DescribeAclsResponse) -> list[AclBinding]:
        error = error_for_code(response.error_code, response.error_message)
        if error is not None:
            _raise_disabled(error)
            raise error
        return [
            AclBinding(
                _pattern(found.resource_type, found.resource_name, found.pattern_type),
                _entry(rule),
            )
            for found in response.resources
            for rule in found.acls
        ]

    builder = SimpleBuilder(request)
    return requester.send_to_least_loaded(builder, DescribeAclsResponse, read)


def create_acls(
    requester: Requester, acls: AclBinding | Iterable[AclBinding], *, timeout: float | None = None
) -> Steps[Results[AclBinding, None]]:
    """Add access rules (CreateAcls); those that exist already are left as they are.

    A broker obeys a rule once it has applied the metadata record, shortly after this call.

    Returns:
        None or error by rule.

    Raises:
        SecurityDisabledError: The broker has no authorizer.
        InvalidRequestError: The broker refuses a rule; the error of this rule.
        ClusterAuthorizationError: The client may not ALTER the cluster.
    """
    bindings = list(dict.fromkeys(check_bindings(acls)))
    requester.limit(timeout)
    request = CreateAclsRequest(
        creations=[
            AclCreation(
                resource_type=pattern.resource_type,
                resource_name=pattern.name,
                resource_pattern_type=pattern.pattern_type,
                principal=entry.principal,
                host=entry.host,
                operation=entry.operation,
                permission_type=entry.permission_type,
            )
            for pattern, entry in bindings
        ]
    )

    def read(response: CreateAclsResponse) -> Results[AclBinding, None]:
        _check_count("rules", len(response.results), len(bindings))
        outcomes: Outcomes[AclBinding, None] = {}
        for binding, result in zip(bindings, response.results, strict=True):
            error = item_error(str(binding), result.error_code, result.error_message)
            _raise_disabled(error)
            outcomes[binding] = error
        return Results("create_acls", outcomes)

    steps = requester.send_to_least_loaded(SimpleBuilder(request), CreateAclsResponse, read)
    return raising_if_single(steps, acls, AclBinding)


def delete_acls(
    requester: Requester,
    filters: AclBindingFilter | Iterable[AclBindingFilter],
    *,
    timeout: float | None = None,
) -> Steps[Results[AclBindingFilter, list[AclBinding]]]:
    """Remove the access rules that meet any of the conditions (DeleteAcls).

    `AclBinding.to_filter` returns the condition of one rule.

    Returns:
        Removed rules, or error, by condition. If the broker could not remove one of the rules of a
        condition, that is the error, with a note for each rule that it removed.

    Raises:
        SecurityDisabledError: The broker has no authorizer.
        ClusterAuthorizationError: The client may not ALTER the cluster.
    """
    wanted = list(dict.fromkeys(check_acl_filters(filters)))
    requester.limit(timeout)
    request = DeleteAclsRequest(
        filters=[
            DeleteAclsFilter(
                resource_type_filter=pattern.resource_type,
                resource_name_filter=pattern.name,
                pattern_type_filter=pattern.pattern_type,
                principal_filter=entry.principal,
                host_filter=entry.host,
                operation=entry.operation,
                permission_type=entry.permission_type,
            )
            for pattern, entry in wanted
        ]
    )

    def read(response: DeleteAclsResponse) -> Results[AclBindingFilter, list[AclBinding]]:
        _check_count("filters", len(response.filter_results), len(wanted))
        outcomes = {
            condition: _removed(f"filters[{number}]", result)
            for number, (condition, result) in enumerate(
                zip(wanted, response.filter_results, strict=True)
            )
        }
        return Results("delete_acls", outcomes)

    steps = requester.send_to_least_loaded(SimpleBuilder(request), DeleteAclsResponse, read)
    return raising_if_single(steps, filters, AclBindingFilter)


def _removed(what: str, result: DeleteAclsFilterResult) -> list[AclBinding] | KafkaError:
    """Return the rules that a condition removed, or its error."""
    error = item_error(what, result.error_code, result.error_message)
    _raise_disabled(error)
    if error is not None:
        return error
    removed, errors = [], []
    for match in result.matching_acls:
        binding = AclBinding(
            _pattern(match.resource_type, match.resource_name, match.pattern_type), _entry(match)
        )
        failure = item_error(str(binding), match.error_code, match.error_message)
        if failure is None:
            removed.append(binding)
        else:
            errors.append(failure)
    if not errors:
        return removed
    first, *others = errors
    for other in others:
        first.add_note(f"also failed: {other}")
    for binding in removed:
        first.add_note(f"removed: {binding}")
    return first


def _pattern(kind: int, name: str, pattern_type: int) -> ResourcePattern:
    return ResourcePattern(
        member_of(ResourceType, kind), name, member_of(PatternType, pattern_type)
    )


def _entry(rule: AclDescription | DeleteAclsMatchingAcl) -> AccessControlEntry:
    return AccessControlEntry(
        rule.principal,
        rule.host,
        member_of(AclOperation, rule.operation),
        member_of(AclPermissionType, rule.permission_type),
    )


def _raise_disabled(error: KafkaError | None) -> None:
    if isinstance(error, SecurityDisabledError):
        raise SecurityDisabledError(
            "SECURITY_DISABLED: the broker has no authorizer, and so no access rules; its "
            "authorizer.class.name sets one"
        ) from error


def _check_count(what: str, got: int, expected: int) -> None:
    if got != expected:
        raise ProtocolError(f"outcomes of {what}: got {got}, expected {expected}")
