"""Admin calls for access rules."""

import pytest

from kclient.admin import acl_calls
from kclient.common.acls import (
    AccessControlEntry,
    AccessControlEntryFilter,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)
from kclient.common.broker_errors import InvalidRequestError, SecurityDisabledError
from kclient.common.errors import ProtocolError
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.message import Request, Response
from kclient.protocol.messages import acls as messages
from tests.support.clients.scripted_broker import ScriptedBroker
from tests.support.virtual.admin_world import AdminWorld

READ = AclBinding(
    ResourcePattern(ResourceType.TOPIC, "logs-", PatternType.PREFIXED),
    AccessControlEntry("User:alice", "*", AclOperation.READ, AclPermissionType.ALLOW),
)
DENY = AclBinding(
    ResourcePattern(ResourceType.GROUP, "*"),
    AccessControlEntry("User:bob", "10.0.0.7", AclOperation.ALL, AclPermissionType.DENY),
)


def test_rules_are_described_with_unknown_codes() -> None:
    resource = messages.DescribeAclsResource(
        resource_type=2,
        resource_name="logs-",
        pattern_type=4,
        acls=[
            messages.AclDescription(
                principal="User:alice", host="*", operation=3, permission_type=3
            ),
            messages.AclDescription(principal="U:x", host="h", operation=99, permission_type=8),
        ],
    )
    newer = messages.DescribeAclsResource(resource_type=77, resource_name="x", pattern_type=9)
    newer.acls = [messages.AclDescription(principal="U:y", host="h", operation=3)]
    world = AdminWorld()
    world.respond(
        ApiKey.DESCRIBE_ACLS,
        lambda *_: messages.DescribeAclsResponse(resources=[resource, newer]),
        low=1,
        high=3,
    )
    wanted = AclBindingFilter(
        ResourcePatternFilter(ResourceType.TOPIC, "logs-a", PatternType.MATCH),
        AccessControlEntryFilter("User:alice"),
    )
    known, unknown, of_newer = world.run(acl_calls.describe_acls, wanted)
    assert known == READ
    assert unknown.entry == AccessControlEntry(
        "U:x", "h", AclOperation.UNKNOWN, AclPermissionType.UNKNOWN
    )
    assert of_newer.pattern == ResourcePattern(ResourceType.UNKNOWN, "x", PatternType.UNKNOWN)
    (request,) = world.requests(messages.DescribeAclsRequest)
    assert isinstance(request, messages.DescribeAclsRequest)
    assert (request.resource_type_filter, request.resource_name_filter) == (2, "logs-a")
    assert (request.pattern_type_filter, request.principal_filter) == (2, "User:alice")
    assert (request.host_filter, request.operation, request.permission_type) == (None, 1, 1)


def test_refused_rules_are_named() -> None:
    def refused(_: ScriptedBroker, request: Request) -> Response:
        assert isinstance(request, messages.CreateAclsRequest)
        first, second = request.creations
        assert (first.resource_type, first.resource_name, first.resource_pattern_type) == (
            2,
            "logs-",
            4,
        )
        assert (second.principal, second.host) == ("User:bob", "10.0.0.7")
        assert (second.operation, second.permission_type) == (2, 2)
        return messages.CreateAclsResponse(
            results=[
                messages.AclCreationResult(),
                messages.AclCreationResult(error_code=42, error_message="no"),
            ]
        )

    world = AdminWorld()
    world.respond(ApiKey.CREATE_ACLS, refused, low=1, high=3)
    with pytest.raises(
        InvalidRequestError, match=r"DENY ALL by 'User:bob' from '10\.0\.0\.7' on GROUP '\*': .*no"
    ):
        world.run(acl_calls.create_acls, [READ, DENY]).raise_for_errors()


def test_removed_rules_are_returned_by_condition() -> None:
    match = messages.DeleteAclsMatchingAcl(
        resource_type=2,
        resource_name="logs-",
        pattern_type=4,
        principal="User:alice",
        host="*",
        operation=3,
        permission_type=3,
    )
    results = [messages.DeleteAclsFilterResult(matching_acls=[match])] * 2
    world = AdminWorld()
    world.respond(
        ApiKey.DELETE_ACLS,
        lambda *_: messages.DeleteAclsResponse(filter_results=results),
        low=1,
        high=3,
    )
    filters = [READ.to_filter(), AclBindingFilter()]
    assert world.run(acl_calls.delete_acls, [*filters, filters[0]]) == {
        filters[0]: [READ],
        filters[1]: [READ],
    }
    (request,) = world.requests(messages.DeleteAclsRequest)
    assert isinstance(request, messages.DeleteAclsRequest)
    first, second = request.filters
    assert (first.resource_name_filter, first.pattern_type_filter) == ("logs-", 4)
    assert (second.resource_name_filter, second.pattern_type_filter) == (None, 1)


def test_refused_filter_and_rule_are_named() -> None:
    match = messages.DeleteAclsMatchingAcl(
        error_code=42, resource_type=4, resource_name="kafka-cluster", principal="U:x", host="h"
    )
    results = [
        messages.DeleteAclsFilterResult(error_code=42, error_message="no"),
        messages.DeleteAclsFilterResult(matching_acls=[match]),
    ]
    world = AdminWorld()
    world.respond(
        ApiKey.DELETE_ACLS,
        lambda *_: messages.DeleteAclsResponse(filter_results=results),
        low=1,
        high=3,
    )
    filters = [READ.to_filter(), AclBindingFilter()]
    with pytest.raises(InvalidRequestError, match=r"filters\[0\]: .*no") as caught:
        world.run(acl_calls.delete_acls, filters).raise_for_errors().raise_for_errors()
    assert "CLUSTER 'kafka-cluster'" in caught.value.__notes__[0]


def test_broker_without_authorizer() -> None:
    world = AdminWorld()
    for api, response in (
        (ApiKey.DESCRIBE_ACLS, messages.DescribeAclsResponse(error_code=54)),
        (
            ApiKey.CREATE_ACLS,
            messages.CreateAclsResponse(results=[messages.AclCreationResult(error_code=54)]),
        ),
        (
            ApiKey.DELETE_ACLS,
            messages.DeleteAclsResponse(
                filter_results=[messages.DeleteAclsFilterResult(error_code=54)]
            ),
        ),
    ):
        world.respond(api, lambda *_, response=response: response, low=1, high=3)
    with pytest.raises(SecurityDisabledError, match=r"authorizer\.class\.name"):
        world.run(acl_calls.describe_acls)
    with pytest.raises(SecurityDisabledError, match=r"authorizer\.class\.name"):
        world.run(acl_calls.create_acls, [READ]).raise_for_errors()
    with pytest.raises(SecurityDisabledError, match=r"authorizer\.class\.name"):
        world.run(acl_calls.delete_acls, [AclBindingFilter()]).raise_for_errors()


def test_missing_outcome_is_an_error() -> None:
    world = AdminWorld()
    world.respond(ApiKey.CREATE_ACLS, lambda *_: messages.CreateAclsResponse(), low=1, high=3)
    with pytest.raises(ProtocolError, match="got 0, expected 1"):
        world.run(acl_calls.create_acls, [READ]).raise_for_errors()
