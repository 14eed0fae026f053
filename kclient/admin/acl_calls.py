"""Admin calls for access rules."""

from collections.abc import Sequence

from kclient.admin.requester import Requester, item_error, raise_failures
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


def describe_acls(
    requester: Requester, wanted: AclBindingFilter, deadline_ms: float
) -> Steps[list[AclBinding]]:
    """Return the rules that meet a condition."""
    pattern, entry = wanted
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
    return requester.send_to_least_loaded(builder, DescribeAclsResponse, read, deadline_ms)


def create_acls(
    requester: Requester, bindings: Sequence[AclBinding], deadline_ms: float
) -> Steps[None]:
    """Add rules."""
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

    def read(response: CreateAclsResponse) -> dict[str, KafkaError]:
        _check_count("rules", len(response.results), len(bindings))
        failures = {}
        for binding, result in zip(bindings, response.results, strict=True):
            error = item_error(str(binding), result.error_code, result.error_message)
            if error is not None:
                _raise_disabled(error)
                failures[str(binding)] = error
        return failures

    raise_failures(
        (
            yield from requester.send_to_least_loaded(
                SimpleBuilder(request), CreateAclsResponse, read, deadline_ms
            )
        )
    )


def delete_acls(
    requester: Requester, filters: Sequence[AclBindingFilter], deadline_ms: float
) -> Steps[list[AclBinding]]:
    """Remove the rules that meet any of the conditions; return them."""
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
            for pattern, entry in filters
        ]
    )

    def read(response: DeleteAclsResponse) -> tuple[list[AclBinding], dict[str, KafkaError]]:
        _check_count("filters", len(response.filter_results), len(filters))
        removed: dict[AclBinding, None] = {}
        failures: dict[str, KafkaError] = {}
        for number, result in enumerate(response.filter_results):
            found, errors = _removed(f"filters[{number}]", result)
            removed |= dict.fromkeys(found)
            failures |= errors
        return list(removed), failures

    removed, failures = yield from requester.send_to_least_loaded(
        SimpleBuilder(request), DeleteAclsResponse, read, deadline_ms
    )
    raise_failures(failures)
    return removed


def _removed(
    what: str, result: DeleteAclsFilterResult
) -> tuple[list[AclBinding], dict[str, KafkaError]]:
    """Return the rules that a filter removed, and errors by filter or rule."""
    error = item_error(what, result.error_code, result.error_message)
    if error is not None:
        _raise_disabled(error)
        return [], {what: error}
    removed, failures = [], {}
    for match in result.matching_acls:
        binding = AclBinding(
            _pattern(match.resource_type, match.resource_name, match.pattern_type), _entry(match)
        )
        error = item_error(str(binding), match.error_code, match.error_message)
        if error is None:
            removed.append(binding)
        else:
            failures[str(binding)] = error
    return removed, failures


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


def _raise_disabled(error: KafkaError) -> None:
    if isinstance(error, SecurityDisabledError):
        raise SecurityDisabledError(
            "SECURITY_DISABLED: the broker has no authorizer, and so no access rules; its "
            "authorizer.class.name sets one"
        ) from error


def _check_count(what: str, got: int, expected: int) -> None:
    if got != expected:
        raise ProtocolError(f"outcomes of {what}: got {got}, expected {expected}")
