"""Authorizer with the ACLs of the cluster metadata."""

import logging
from collections.abc import Callable, Mapping

from kclient.broker.authorizer.acl_index import AclIndex, Decision, Subject, normalized_host
from kclient.broker.metadata.metadata_image import StandardAcl
from kclient.common.acls import AclOperation, ResourceType
from kclient.common.errors import ConfigError
from kclient.network.authenticator import KafkaPrincipal

AUTHORIZER = "authorizer.class.name"
SUPER_USERS = "super.users"
STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"

_log = logging.getLogger(__name__)
_SUPER_USER = Decision(is_allowed=True, rule="SuperUser")

Acls = Mapping[bytes, StandardAcl]


class StandardAuthorizer:
    """Authorizer (Kafka: StandardAuthorizer, KIP-801).

    Any thread may call it. Denials are logged as INFO, other decisions as DEBUG.

    Args:
        acls: Returns the present ACLs by id; the mapping is replaced when they change.
        super_users: Principals that may do everything, as text.
        default_allow: ``allow.everyone.if.no.acl.found``.
    """

    def __init__(
        self, acls: Callable[[], Acls], super_users: frozenset[str], *, default_allow: bool
    ) -> None:
        self._acls = acls
        self._super_users = super_users
        self._default_allow = default_allow
        self._built: tuple[Acls, AclIndex] = ({}, AclIndex((), default_allow=default_allow))

    def authorize(
        self,
        principal: KafkaPrincipal,
        host: str,
        operation: AclOperation,
        resource_type: ResourceType,
        name: str,
        *,
        is_logged: bool = True,
    ) -> bool:
        """Return whether a principal may do an operation on a resource.

        Args:
            principal: Principal of the client.
            host: IP address of the client.
            operation: The operation.
            resource_type: Type of the resource.
            name: Name of the resource.
            is_logged: Whether a denial is logged; False for checks that only filter a list.
        """
        subject = Subject(str(principal), normalized_host(host))
        if subject.principal in self._super_users:
            decision = _SUPER_USER
        else:
            decision = self._index().decide(subject, operation, resource_type, name)
        if is_logged:
            _log_decision(subject, decision, operation, f"{resource_type.name}:LITERAL:{name!r}")
        return decision.is_allowed

    def authorize_by_resource_type(
        self,
        principal: KafkaPrincipal,
        host: str,
        operation: AclOperation,
        resource_type: ResourceType,
    ) -> bool:
        """Return whether there is a resource on which a principal may do an operation (KIP-679)."""
        subject = Subject(str(principal), normalized_host(host))
        if subject.principal in self._super_users:
            return True
        return self._index().allows_any(subject, operation, resource_type)

    def _index(self) -> AclIndex:
        """Return the index of the present ACLs; it is built again when they have changed."""
        acls = self._acls()
        built, index = self._built
        if built is not acls:
            index = AclIndex(acls.values(), default_allow=self._default_allow)
            self._built = (acls, index)
        return index


def parse_super_users(given: str) -> frozenset[str]:
    """Return the principals of ``super.users``, ``Type:Name`` separated by semicolons.

    Raises:
        ConfigError: An item has another form.
    """
    found = [item.strip() for item in given.split(";") if item.strip()]
    for item in found:
        kind, colon, name = item.partition(":")
        if not (kind and colon and name):
            raise ConfigError(
                f"{SUPER_USERS}: got {item!r:.80}, expected 'User:name', separated by semicolons"
            )
    return frozenset(found)


def _log_decision(
    subject: Subject, decision: Decision, operation: AclOperation, resource: str
) -> None:
    level = logging.DEBUG if decision.is_allowed else logging.INFO
    if _log.isEnabledFor(level):
        _log.log(
            level,
            "Principal = %r is %s operation = %s from host = %s on resource = %.300s (%s)",
            subject.principal,
            "Allowed" if decision.is_allowed else "Denied",
            operation.name,
            subject.host,
            resource,
            decision.rule,
        )
