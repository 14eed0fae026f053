"""Errors of operations that ACLs deny, with the operation that has to be allowed."""

from collections.abc import Iterable

from kclient.common.broker_errors import GroupAuthorizationError, TopicAuthorizationError

READ, WRITE, DESCRIBE = "READ", "WRITE", "DESCRIBE"

_ACTIONS = {READ: "read", WRITE: "write to", DESCRIBE: "access"}
_ALLOWED = {READ: READ, WRITE: WRITE, DESCRIBE: "DESCRIBE, as READ and WRITE do"}


def topics_denied(topics: Iterable[str], operation: str) -> TopicAuthorizationError:
    """Return the error of topics that the principal may not access.

    Brokers refuse topics that do not exist in the same way, so that their names are not revealed.

    Args:
        topics: Names of the topics.
        operation: READ, WRITE or DESCRIBE, which has to be allowed.
    """
    names = ", ".join(map(repr, sorted(topics)))
    return TopicAuthorizationError(
        f"{TopicAuthorizationError.error_name}: not authorized to {_ACTIONS[operation]} topic"
        f" {names}; an ACL has to allow {_ALLOWED[operation]}, or the topic does not exist"
    )


def group_denied(group_id: str) -> GroupAuthorizationError:
    """Return the error of a group that the principal may not access."""
    return GroupAuthorizationError(
        f"{GroupAuthorizationError.error_name}: not authorized to access group {group_id!r}; an ACL"
        " has to allow READ on it"
    )
