"""Checks of arguments for users and access rules, made before any request.

Each returns what it checked, or raises `InvalidTypeError` or `InvalidArgumentError` with the
expected form.
"""

import base64
import binascii
from collections.abc import Iterable
from enum import IntEnum

from kclient.admin.arguments import check_int, check_list, check_names
from kclient.admin.cluster_arguments import check_enum, check_instance, check_text
from kclient.admin.scram_types import (
    ScramCredentialInfo,
    UserScramCredentialAlteration,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
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
from kclient.common.config_def import describe
from kclient.common.errors import InvalidArgumentError, InvalidTypeError
from kclient.common.secret import Secret
from kclient.network.sasl.scram import SCRAM_MECHANISMS, ScramMechanism

_MAX_LONG = 2**63 - 1
_PATTERNS = (PatternType.LITERAL, PatternType.PREFIXED)


def check_users(users: str | Iterable[str] | None) -> list[str] | None:
    """Return names of users, None for all users."""
    if users is None:
        return None
    listed = check_list("users", users, str)
    for user in listed:
        check_text("users", user)
    return listed


def check_alterations(
    alterations: UserScramCredentialAlteration | Iterable[UserScramCredentialAlteration],
) -> list[UserScramCredentialAlteration]:
    """Return changes of credentials."""
    checked: list[UserScramCredentialAlteration] = []
    kinds = (UserScramCredentialUpsertion, UserScramCredentialDeletion)
    for each in check_list("alterations", alterations, kinds):
        if isinstance(each, UserScramCredentialDeletion):
            check_text("user", each.user)
            _check_mechanism(each.mechanism)
            checked.append(each)
        else:
            upsertion = check_instance("alterations", each, UserScramCredentialUpsertion)
            _check_upsertion(upsertion)
            checked.append(upsertion)
    return checked


def _check_upsertion(alteration: UserScramCredentialUpsertion) -> None:
    check_text("user", alteration.user)
    # With other text a credential is stored that no login of a client can use.
    if not alteration.user.isascii() or "\0" in alteration.user:
        raise InvalidArgumentError(
            f"user: got {describe(alteration.user)}, expected an ASCII user name without NUL; "
            "brokers refuse logins of others"
        )
    info = check_instance("credential_info", alteration.credential_info, ScramCredentialInfo)
    mechanism = _check_mechanism(info.mechanism)
    what = f"iterations of user {alteration.user!r}"
    least, most = mechanism.least_iterations, mechanism.most_iterations
    check_int(what, info.iterations, least)
    if info.iterations > most:
        raise InvalidArgumentError(f"{what}: got {info.iterations}, expected {least} to {most}")
    password, salt = alteration.password, alteration.salt
    what = f"password of user {alteration.user!r}"
    if not isinstance(password, Secret):
        raise InvalidTypeError(f"{what}: got a {type(password).__name__}, expected a str")
    if not password.reveal():
        raise InvalidArgumentError(f"{what}: got '', expected a non-empty str")
    if "\0" in password.reveal():
        raise InvalidArgumentError(f"{what}: got a NUL, expected text without one")
    what = f"salt of user {alteration.user!r}"
    if salt is not None and not isinstance(salt, bytes):
        raise InvalidTypeError(f"{what}: got {describe(salt)}, expected bytes, or None")
    if salt == b"":
        raise InvalidArgumentError(f"{what}: got b'', expected at least one byte, or None")


def _check_mechanism(name: object) -> ScramMechanism:
    found = SCRAM_MECHANISMS.get(name) if isinstance(name, str) else None
    if found is None:
        raise InvalidArgumentError(
            f"mechanism: got {describe(name)}, expected {' or '.join(SCRAM_MECHANISMS)}"
        )
    return found


def check_bindings(bindings: AclBinding | Iterable[AclBinding]) -> list[AclBinding]:
    """Return rules to add."""
    listed = check_list("acls", bindings, AclBinding)
    for each in listed:
        binding = check_instance("acls", each, AclBinding)
        _check_pattern(check_instance("pattern of an AclBinding", binding.pattern, ResourcePattern))
        _check_entry(check_instance("entry of an AclBinding", binding.entry, AccessControlEntry))
    return listed


def _check_pattern(pattern: ResourcePattern) -> None:
    _check_definite("resource_type", pattern.resource_type, ResourceType)
    check_text("name of a ResourcePattern", pattern.name)
    kind = check_enum("pattern_type", pattern.pattern_type, PatternType)
    if kind not in _PATTERNS:
        raise InvalidArgumentError(f"pattern_type: got {kind.name}, expected LITERAL or PREFIXED")


def _check_entry(entry: AccessControlEntry) -> None:
    check_principal("principal", entry.principal)
    check_text("host", entry.host)
    _check_definite("operation", entry.operation, AclOperation)
    _check_definite("permission_type", entry.permission_type, AclPermissionType)


def check_principal(what: str, principal: object) -> tuple[str, str]:
    """Return type and name of a principal."""
    if not isinstance(principal, str):
        raise InvalidTypeError(f"{what}: got {describe(principal)}, expected a str")
    kind, colon, name = principal.partition(":")
    if not (kind and colon and name):
        raise InvalidArgumentError(
            f"{what}: got {describe(principal)}, expected a type and a name, such as 'User:alice'"
        )
    return kind, name


def _check_definite(what: str, value: object, kind: type[IntEnum]) -> None:
    """Reject what is for filters alone, and what a newer broker has sent."""
    member = check_enum(what, value, kind)
    if member.name in {"ANY", "UNKNOWN"}:
        raise InvalidArgumentError(f"{what}: got {member.name}, expected a single one")


def check_acl_filters(
    filters: AclBindingFilter | Iterable[AclBindingFilter],
) -> list[AclBindingFilter]:
    """Return conditions on rules to remove."""
    listed = check_list("filters", filters, AclBindingFilter)
    for each in listed:
        check_acl_filter(each)
    return listed


def check_acl_filter(wanted: AclBindingFilter) -> AclBindingFilter:
    """Return a condition on rules."""
    given = check_instance("filter", wanted, AclBindingFilter)
    pattern = check_instance("pattern_filter", given.pattern_filter, ResourcePatternFilter)
    entry = check_instance("entry_filter", given.entry_filter, AccessControlEntryFilter)
    for what, text in (
        ("name", pattern.name),
        ("principal", entry.principal),
        ("host", entry.host),
    ):
        if text is not None:
            check_text(what, text)
    _check_known("resource_type", pattern.resource_type, ResourceType)
    _check_known("pattern_type", pattern.pattern_type, PatternType)
    _check_known("operation", entry.operation, AclOperation)
    _check_known("permission_type", entry.permission_type, AclPermissionType)
    return given


def _check_known(what: str, value: object, kind: type[IntEnum]) -> None:
    member = check_enum(what, value, kind)
    if not member:  # UNKNOWN is 0
        raise InvalidArgumentError(f"{what}: got UNKNOWN, expected another one, or ANY for all")


def check_principals(what: str, principals: str | Iterable[str]) -> list[tuple[str, str]]:
    """Return types and names of principals, which may be none."""
    listed = [principals] if isinstance(principals, str) else check_names(what, principals)
    return [check_principal(what, each) for each in listed]


def check_period(what: str, period_ms: int) -> int:
    """Return a period in ms, or -1 for the default of the call."""
    check_int(what, period_ms, -1, " ms", high=_MAX_LONG)
    return period_ms


def check_hmac(hmac: object) -> bytes:
    """Return the secret of a delegation token; no error shows it."""
    if not isinstance(hmac, Secret | str):
        raise InvalidTypeError(
            f"hmac: got a {type(hmac).__name__}, expected the hmac of a DelegationToken"
        )
    text = hmac.reveal() if isinstance(hmac, Secret) else hmac
    try:
        decoded = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):  # of characters that are not ASCII
        decoded = b""
    if not decoded:
        raise InvalidArgumentError(
            "hmac: got text that is not base64, expected the hmac of a DelegationToken"
        )
    return decoded
