"""ACLs: DescribeAcls, CreateAcls and DeleteAcls, versions 1-3.

Without ``authorizer.class.name`` they fail with SECURITY_DISABLED.

Differences from Apache Kafka: an ACL to create with a code that is unknown, or that only filters
have, fails alone with INVALID_REQUEST; there the whole request fails with UNKNOWN_SERVER_ERROR, or
the connection is closed.
"""

from collections.abc import Callable
from functools import partial

from kclient.broker.authorizer.acl_filter import filter_of, matches
from kclient.broker.metadata.metadata_image import StandardAcl
from kclient.broker.network.request_channel import Request
from kclient.broker.server.served_api import BrokerServices, ServedApi
from kclient.common.acls import AclOperation
from kclient.common.broker_errors import NONE, SecurityDisabledError, code_of
from kclient.common.errors import KafkaError
from kclient.protocol.message import Request as RequestMessage
from kclient.protocol.message import Response as ResponseMessage
from kclient.protocol.messages.acls import (
    AclCreationResult,
    AclDescription,
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsFilterResult,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)


def _describe_acls(
    services: BrokerServices, request: Request, body: DescribeAclsRequest
) -> DescribeAclsResponse:
    """Return the matching ACLs by resource pattern."""
    try:
        services.auth.require_cluster(request, AclOperation.DESCRIBE)
        _require_authorizer(services)
        wanted = filter_of(body)
    except KafkaError as error:
        return DescribeAclsResponse(error_code=code_of(error), error_message=str(error))
    resources: dict[tuple[int, str, int], DescribeAclsResource] = {}
    for acl in services.metadata.image.acls.values():
        if matches(wanted, acl):
            _resource_of(resources, acl).acls.append(
                AclDescription(
                    principal=acl.principal,
                    host=acl.host,
                    operation=acl.operation,
                    permission_type=acl.permission_type,
                )
            )
    return DescribeAclsResponse(
        error_code=NONE, error_message=None, resources=list(resources.values())
    )


def _resource_of(
    resources: dict[tuple[int, str, int], DescribeAclsResource], acl: StandardAcl
) -> DescribeAclsResource:
    key = (acl.resource_type, acl.resource_name, acl.pattern_type)
    if key not in resources:
        resources[key] = DescribeAclsResource(
            resource_type=acl.resource_type,
            resource_name=acl.resource_name,
            pattern_type=acl.pattern_type,
        )
    return resources[key]


def _create_acls(services: BrokerServices, request: Request, body: CreateAclsRequest) -> None:
    """Add ACLs; each succeeds or fails alone."""
    _change(services, request, body, partial(failed_creation, body))


def failed_creation(body: CreateAclsRequest, code: int) -> CreateAclsResponse:
    """Return the response that refuses a whole request."""
    return CreateAclsResponse(
        results=[AclCreationResult(error_code=code, error_message=None) for _ in body.creations]
    )


def _delete_acls(services: BrokerServices, request: Request, body: DeleteAclsRequest) -> None:
    """Remove the ACLs that match any of the filters."""
    _change(services, request, body, partial(failed_deletion, body))


def failed_deletion(body: DeleteAclsRequest, code: int) -> DeleteAclsResponse:
    """Return the response that refuses a whole request."""
    return DeleteAclsResponse(
        filter_results=[
            DeleteAclsFilterResult(error_code=code, error_message=None) for _ in body.filters
        ]
    )


def _change(
    services: BrokerServices,
    request: Request,
    body: RequestMessage,
    failed: Callable[[int], ResponseMessage],
) -> None:
    """Send a change to the controller, and respond when this broker has applied it."""
    services.auth.require_cluster(request, AclOperation.ALTER)
    _require_authorizer(services)

    def on_done(outcome: ResponseMessage | KafkaError) -> None:
        request.respond(failed(code_of(outcome)) if isinstance(outcome, KafkaError) else outcome)

    services.controller.change(body, on_done)


def _require_authorizer(services: BrokerServices) -> None:
    if not services.auth.has_authorizer:
        raise SecurityDisabledError("No Authorizer is configured.")


APIS = (
    ServedApi(DescribeAclsRequest, _describe_acls),
    ServedApi(CreateAclsRequest, _create_acls, failed_creation),
    ServedApi(DeleteAclsRequest, _delete_acls, failed_deletion),
)
