"""Checks of arguments for users and access rules, made before any request.

Each returns what it checked, or raises `InvalidTypeError` or `InvalidArgumentError` with the
expected form.
"""

from collections.abc import Iterable

from kclient.admin.arguments import check_int, check_list
from kclient.admin.cluster_arguments import check_instance, check_text
from kclient.admin.scram_types import (
    ScramCredentialInfo,
    UserScramCredentialAlteration,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from kclient.common.config_def import describe
from kclient.common.errors import InvalidArgumentError, InvalidTypeError
from kclient.common.secret import Secret
from kclient.network.sasl.scram import SCRAM_MECHANISMS, ScramMechanism


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
