"""Access rules: DescribeAcls (29), CreateAcls (30), DeleteAcls (31) (KIP-140, KIP-290)."""

from kclient.protocol.api_keys import ApiKey
from kclient.protocol.fields import Struct, array, int8, int16, int32, string
from kclient.protocol.message import Request, Response

_LITERAL = 3


class AclDescription(Struct):
    """Rule of a resource pattern."""

    principal: str = string("0+")
    host: str = string("0+")
    operation: int = int8("0+")
    permission_type: int = int8("0+")


class DescribeAclsResource(Struct):
    """Resource pattern with its rules."""

    resource_type: int = int8("0+")
    resource_name: str = string("0+")
    pattern_type: int = int8("1+", default=_LITERAL)
    acls: list[AclDescription] = array(AclDescription, "0+")


class DescribeAclsResponse(Response, versions="1-3", flexible="2+"):
    """The matching rules."""

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    resources: list[DescribeAclsResource] = array(DescribeAclsResource, "0+")


class DescribeAclsRequest(
    Request,
    api_key=ApiKey.DESCRIBE_ACLS,
    response=DescribeAclsResponse,
    versions="1-3",
    flexible="2+",
):
    """Filter of rules; null and the code of ANY match all."""

    resource_type_filter: int = int8("0+")
    resource_name_filter: str | None = string("0+", nullable="0+")
    pattern_type_filter: int = int8("1+", default=_LITERAL)
    principal_filter: str | None = string("0+", nullable="0+")
    host_filter: str | None = string("0+", nullable="0+")
    operation: int = int8("0+")
    permission_type: int = int8("0+")


class AclCreationResult(Struct):
    """Outcome for a rule."""

    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")


class CreateAclsResponse(Response, versions="1-3", flexible="2+"):
    """Outcome for each rule, in the order of the request."""

    throttle_time_ms: int = int32("0+")
    results: list[AclCreationResult] = array(AclCreationResult, "0+")


class AclCreation(Struct):
    """Rule to add."""

    resource_type: int = int8("0+")
    resource_name: str = string("0+")
    resource_pattern_type: int = int8("1+", default=_LITERAL)
    principal: str = string("0+")
    host: str = string("0+")
    operation: int = int8("0+")
    permission_type: int = int8("0+")


class CreateAclsRequest(
    Request,
    api_key=ApiKey.CREATE_ACLS,
    response=CreateAclsResponse,
    versions="1-3",
    flexible="2+",
):
    """Rules to add; those that exist already succeed."""

    creations: list[AclCreation] = array(AclCreation, "0+")


class DeleteAclsMatchingAcl(Struct):
    """Rule that was removed, or the error for it."""

    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    resource_type: int = int8("0+")
    resource_name: str = string("0+")
    pattern_type: int = int8("1+", default=_LITERAL)
    principal: str = string("0+")
    host: str = string("0+")
    operation: int = int8("0+")
    permission_type: int = int8("0+")


class DeleteAclsFilterResult(Struct):
    """Outcome for a filter."""

    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    matching_acls: list[DeleteAclsMatchingAcl] = array(DeleteAclsMatchingAcl, "0+")


class DeleteAclsResponse(Response, versions="1-3", flexible="2+"):
    """Outcome for each filter, in the order of the request."""

    throttle_time_ms: int = int32("0+")
    filter_results: list[DeleteAclsFilterResult] = array(DeleteAclsFilterResult, "0+")


class DeleteAclsFilter(Struct):
    """Filter of the rules to remove; see `DescribeAclsRequest`."""

    resource_type_filter: int = int8("0+")
    resource_name_filter: str | None = string("0+", nullable="0+")
    pattern_type_filter: int = int8("1+", default=_LITERAL)
    principal_filter: str | None = string("0+", nullable="0+")
    host_filter: str | None = string("0+", nullable="0+")
    operation: int = int8("0+")
    permission_type: int = int8("0+")


class DeleteAclsRequest(
    Request,
    api_key=ApiKey.DELETE_ACLS,
    response=DeleteAclsResponse,
    versions="1-3",
    flexible="2+",
):
    """Removal of the matching rules."""

    filters: list[DeleteAclsFilter] = array(DeleteAclsFilter, "0+")
