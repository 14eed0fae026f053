"""Methods of the admin client for users and access rules."""

from collections.abc import Iterable

from kclient.admin import acl_calls, scram_calls
from kclient.admin.cluster_methods import ClusterMethods
from kclient.admin.scram_types import ScramCredentialInfo, UserScramCredentialAlteration
from kclient.admin.security_arguments import (
    check_acl_filter,
    check_acl_filters,
    check_alterations,
    check_bindings,
    check_users,
)
from kclient.common.acls import AclBinding, AclBindingFilter

_ANY_ACL = AclBindingFilter()


class SecurityMethods(ClusterMethods):
    """Methods for users and access rules."""

    # -- users -----------------------------------------------------------------------------

    def describe_user_scram_credentials(
        self, users: str | Iterable[str] | None = None, *, timeout: float | None = None
    ) -> dict[str, tuple[ScramCredentialInfo, ...]]:
        """Return the SCRAM credentials of users, sorted and without secrets (KIP-554).

        Args:
            users: Names of users; None for all users that have credentials.
            timeout: Timeout in seconds.

        Raises:
            ResourceNotFoundError: A user has no credentials.
            DuplicateResourceError: A user is given twice.
            ClusterAuthorizationError: The client may not DESCRIBE the cluster.
        """
        wanted = check_users(users)
        return self._call(
            "describe_user_scram_credentials",
            timeout,
            lambda requester, end: scram_calls.describe_user_scram_credentials(
                requester, wanted, end
            ),
        )

    def alter_user_scram_credentials(
        self,
        alterations: UserScramCredentialAlteration | Iterable[UserScramCredentialAlteration],
        *,
        timeout: float | None = None,
    ) -> None:
        """Add, replace and remove SCRAM credentials of users (KIP-554).

        The client computes the salted passwords, so that no password is sent. Each user succeeds or
        fails alone. Connections that are open remain authenticated. A broker accepts a new
        credential once it has applied the metadata record, shortly after this call.

        Raises:
            ResourceNotFoundError: A credential to remove does not exist.
            DuplicateResourceError: A user is given twice, be it with two mechanisms.
            UnacceptableCredentialError: The broker refuses a name or an iteration count.
            ClusterAuthorizationError: The client may not ALTER the cluster.
        """
        wanted = check_alterations(alterations)
        self._call(
            "alter_user_scram_credentials",
            timeout,
            lambda requester, end: scram_calls.alter_user_scram_credentials(requester, wanted, end),
        )

    # -- access rules ----------------------------------------------------------------------

    def describe_acls(
        self, wanted: AclBindingFilter = _ANY_ACL, *, timeout: float | None = None
    ) -> list[AclBinding]:
        """Return access rules (DescribeAcls, KIP-140, KIP-290).

        Args:
            wanted: Condition on the rules; by default every rule.
            timeout: Timeout in seconds.

        Raises:
            SecurityDisabledError: The broker has no authorizer.
            ClusterAuthorizationError: The client may not DESCRIBE the cluster.
        """
        checked = check_acl_filter(wanted)
        return self._call(
            "describe_acls",
            timeout,
            lambda requester, end: acl_calls.describe_acls(requester, checked, end),
        )

    def create_acls(
        self, acls: AclBinding | Iterable[AclBinding], *, timeout: float | None = None
    ) -> None:
        """Add access rules (CreateAcls); those that exist already are left as they are.

        A broker obeys a rule once it has applied the metadata record, shortly after this call.

        Raises:
            SecurityDisabledError: The broker has no authorizer.
            InvalidRequestError: The broker refuses a rule.
            ClusterAuthorizationError: The client may not ALTER the cluster.
        """
        checked = check_bindings(acls)
        self._call(
            "create_acls",
            timeout,
            lambda requester, end: acl_calls.create_acls(requester, checked, end),
        )

    def delete_acls(
        self,
        filters: AclBindingFilter | Iterable[AclBindingFilter],
        *,
        timeout: float | None = None,
    ) -> list[AclBinding]:
        """Remove the access rules that meet any of the conditions (DeleteAcls); return them.

        `AclBinding.to_filter` returns the condition of one rule.

        Raises:
            SecurityDisabledError: The broker has no authorizer.
            ClusterAuthorizationError: The client may not ALTER the cluster.
        """
        checked = check_acl_filters(filters)
        return self._call(
            "delete_acls",
            timeout,
            lambda requester, end: acl_calls.delete_acls(requester, checked, end),
        )
