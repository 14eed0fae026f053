"""Authorization of requests, for their handlers."""

from collections.abc import Iterable

from kclient.broker.authorizer.standard_authorizer import StandardAuthorizer
from kclient.broker.network.request_channel import Request
from kclient.common.acls import CLUSTER_NAME, SUPPORTED_OPERATIONS, AclOperation, ResourceType
from kclient.common.broker_errors import ClusterAuthorizationError


class AuthHelper:
    """Questions of handlers to the authorizer (Kafka: AuthHelper).

    Without an authorizer every operation is allowed.

    Args:
        authorizer: The authorizer, or None.

    Attributes:
        has_authorizer: Whether there is an authorizer.
    """

    def __init__(self, authorizer: StandardAuthorizer | None) -> None:
        self._authorizer = authorizer
        self.has_authorizer = authorizer is not None

    def authorize(
        self,
        request: Request,
        operation: AclOperation,
        resource_type: ResourceType,
        name: str,
        *,
        is_logged: bool = True,
    ) -> bool:
        """Return whether the client of a request may do an operation on a resource.

        Args:
            request: The request.
            operation: The operation.
            resource_type: Type of the resource.
            name: Name of the resource.
            is_logged: Whether a denial is logged; False for checks that only filter a list.
        """
        return self._authorizer is None or self._authorizer.authorize(
            request.principal,
            request.client_address,
            operation,
            resource_type,
            name,
            is_logged=is_logged,
        )

    def authorize_topic(self, request: Request, operation: AclOperation, name: str) -> bool:
        """Return whether the client may do an operation on a topic."""
        return self.authorize(request, operation, ResourceType.TOPIC, name)

    def authorize_group(self, request: Request, operation: AclOperation, name: str) -> bool:
        """Return whether the client may do an operation on a group."""
        return self.authorize(request, operation, ResourceType.GROUP, name)

    def authorize_cluster(
        self, request: Request, operation: AclOperation, *, is_logged: bool = True
    ) -> bool:
        """Return whether the client may do an operation on the cluster."""
        return self.authorize(
            request, operation, ResourceType.CLUSTER, CLUSTER_NAME, is_logged=is_logged
        )

    def require_cluster(self, request: Request, operation: AclOperation) -> None:
        """Check that the client may do an operation on the cluster.

        Raises:
            ClusterAuthorizationError: It may not.
        """
        if not self.authorize_cluster(request, operation):
            raise ClusterAuthorizationError("Cluster authorization failed.")

    def authorize_any_topic(self, request: Request, operation: AclOperation) -> bool:
        """Return whether there is a topic on which the client may do an operation."""
        return self._authorizer is None or self._authorizer.authorize_by_resource_type(
            request.principal, request.client_address, operation, ResourceType.TOPIC
        )

    def shown_topics(self, request: Request, names: Iterable[str]) -> list[str]:
        """Return the topics that the client may describe, of all that a list would have."""
        return self._allowed_topics(request, AclOperation.DESCRIBE, names, is_logged=False)

    def described_topics(self, request: Request, names: Iterable[str]) -> list[str]:
        """Return the topics that the client may describe, of those that it has named."""
        return self._allowed_topics(request, AclOperation.DESCRIBE, names, is_logged=True)

    def _allowed_topics(
        self, request: Request, operation: AclOperation, names: Iterable[str], *, is_logged: bool
    ) -> list[str]:
        if self._authorizer is None:
            return list(names)
        kind = ResourceType.TOPIC
        return [
            name
            for name in names
            if self.authorize(request, operation, kind, name, is_logged=is_logged)
        ]

    def authorized_operations(
        self, request: Request, resource_type: ResourceType, name: str
    ) -> int:
        """Return the operations that the client may do on a resource (KIP-430).

        Returns:
            Bits with the numbers of the operations' codes, as an int32.
        """
        bits = 0
        for operation in SUPPORTED_OPERATIONS[resource_type]:
            if self.authorize(request, operation, resource_type, name, is_logged=False):
                bits |= 1 << operation
        return bits
