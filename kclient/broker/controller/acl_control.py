"""CreateAcls and DeleteAcls (Kafka: AclControlManager)."""

from collections.abc import Callable

from kclient.broker.authorizer.acl_filter import filter_of, matches
from kclient.broker.controller.cluster_view import ClusterView, ControllerResult
from kclient.broker.metadata.metadata_image import StandardAcl
from kclient.common.acls import (
    CLUSTER_NAME,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
    member_of,
)
from kclient.common.broker_errors import NONE, InvalidRequestError, code_of
from kclient.common.errors import KafkaError
from kclient.protocol.messages.acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from kclient.protocol.messages.metadata_records import (
    AccessControlEntryRecord,
    MetadataRecord,
    RemoveAccessControlEntryRecord,
)

MAX_DELETED = 10_000
"""Most ACLs that one request deletes (Kafka: MAX_RECORDS_PER_USER_OP)."""


class AclControl:
    """Planner of changes of ACLs.

    Args:
        new_id: Returns a random uuid.
    """

    def __init__(self, new_id: Callable[[], bytes]) -> None:
        self._new_id = new_id

    def create_acls(
        self, view: ClusterView, request: CreateAclsRequest
    ) -> ControllerResult[CreateAclsResponse]:
        """Plan the addition of ACLs; each succeeds or fails alone, and one that exists succeeds."""
        records: list[MetadataRecord] = []
        results = []
        known = set(view.image.acls.values())
        for creation in request.creations:
            result = AclCreationResult(error_code=NONE)
            try:
                acl = _checked_acl(creation)
            except KafkaError as error:
                result.error_code, result.error_message = code_of(error), str(error)
            else:
                if acl not in known:
                    known.add(acl)
                    records.append(AccessControlEntryRecord(id=self._new_id(), **acl._asdict()))
            results.append(result)
        return ControllerResult(records, CreateAclsResponse(results=results))

    @staticmethod
    def delete_acls(
        view: ClusterView, request: DeleteAclsRequest
    ) -> ControllerResult[DeleteAclsResponse]:
        """Plan the removal of the ACLs that match any of the filters.

        Raises:
            InvalidRequestError: They are more than 10,000.
        """
        removed: dict[bytes, None] = {}
        results = []
        for each in request.filters:
            result = DeleteAclsFilterResult(error_code=NONE, error_message=None)
            try:
                found = _matching(view, each)
            except KafkaError as error:
                result.error_code, result.error_message = code_of(error), str(error)
            else:
                removed.update(dict.fromkeys(found))
                result.matching_acls = [_matching_acl(acl) for acl in found.values()]
            results.append(result)
        if len(removed) > MAX_DELETED:
            raise InvalidRequestError(
                f"Cannot remove more than {MAX_DELETED} acls in a single delete operation."
            )
        records = [RemoveAccessControlEntryRecord(id=each) for each in removed]
        return ControllerResult(records, DeleteAclsResponse(filter_results=results))


def _checked_acl(creation: AclCreation) -> StandardAcl:
    """Return the ACL of a request.

    Raises:
        InvalidRequestError: One of its elements is not that of an ACL.
    """
    kind = member_of(ResourceType, creation.resource_type)
    pattern = member_of(PatternType, creation.resource_pattern_type)
    operation = member_of(AclOperation, creation.operation)
    permission = member_of(AclPermissionType, creation.permission_type)
    if kind in (ResourceType.UNKNOWN, ResourceType.ANY):
        raise InvalidRequestError(f"Invalid resourceType {kind.name}")
    if pattern not in (PatternType.LITERAL, PatternType.PREFIXED):
        raise InvalidRequestError(f"Invalid patternType {pattern.name}")
    if operation in (AclOperation.UNKNOWN, AclOperation.ANY):
        raise InvalidRequestError(f"Invalid operation {operation.name}")
    if permission in (AclPermissionType.UNKNOWN, AclPermissionType.ANY):
        raise InvalidRequestError(f"Invalid permissionType {permission.name}")
    if kind == ResourceType.CLUSTER and creation.resource_name != CLUSTER_NAME:
        raise InvalidRequestError(f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
    if not creation.resource_name:
        raise InvalidRequestError("Invalid empty resource name")
    if ":" not in creation.principal:
        raise InvalidRequestError(
            f"Could not parse principal from `{creation.principal:.200}` (no colon is present "
            "separating the principal type from the principal name)"
        )
    return StandardAcl(
        resource_type=kind,
        resource_name=creation.resource_name,
        pattern_type=pattern,
        principal=creation.principal,
        host=creation.host,
        operation=operation,
        permission_type=permission,
    )


def _matching(view: ClusterView, given: DeleteAclsFilter) -> dict[bytes, StandardAcl]:
    wanted = filter_of(given)
    return {each: acl for each, acl in view.image.acls.items() if matches(wanted, acl)}


def _matching_acl(acl: StandardAcl) -> DeleteAclsMatchingAcl:
    return DeleteAclsMatchingAcl(error_code=NONE, error_message=None, **acl._asdict())
