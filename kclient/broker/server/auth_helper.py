"""Authorization of requests, for their handlers."""

import logging
from collections.abc import Callable, Iterable

from kclient.broker.authorizer.standard_authorizer import StandardAuthorizer
from kclient.broker.network.failure_log import LineLimit
from kclient.broker.network.request_channel import Request
from kclient.common.acls import CLUSTER_NAME, SUPPORTED_OPERATIONS, AclOperation, ResourceType
from kclient.common.broker_errors import ClusterAuthorizationError

_log = logging.getLogger(__name__)


class AuthHelper:
    """Questions of handlers to the authorizer (Kafka: AuthHelper).

    Without an authorizer every operation is allowed.

    Args:
        authorizer: The authorizer, or None.
        now_ms: Returns the monotonic time.

    Attributes:
        has_authorizer: Whether there is an authorizer.
    """

    def __init__(self, authorizer: StandardAuthorizer | None, now_ms: Callable[[], float]) -> None:
        self._authorizer = authorizer
        self._now_ms = now_ms
        self._refusals = LineLimit()
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

    def authorize_node(self, request: Request) -> bool:
        """Return whether the client of a request may act as a node of this cluster.

        Nodes repeat what was refused, so that a denial is logged once in a minute.
        """
        if self._authorizer is None:
            return True
        principal, now_ms = str(request.principal), self._now_ms()
        is_due = self._refusals.is_due(principal, now_ms)
        if self.authorize_cluster(request, AclOperation.CLUSTER_ACTION, is_logged=is_due):
            return True
        if self._refusals.takes(principal, now_ms):
            _log.warning(
                "%.200s at %s may not act as a node of this cluster: %s needs an ACL that allows"
                " CLUSTER_ACTION on the cluster, or the principal in super.users",
                repr(principal)[1:-1],
                request.client_address,
                request.header.api_key.name,
            )
        return False

    def require_node(self, request: Request) -> None:
        """Check that the client may act as a node of this cluster.

        Raises:
            ClusterAuthorizationError: It may not.
        """
        if not self.authorize_node(request):
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
