"""``kclient users``: lists, adds, alters and deletes users with SCRAM credentials."""

import argparse
import sys
from collections.abc import Mapping

from kclient.admin.admin_client import AdminClient
from kclient.admin.admin_core import ADMIN_CONFIG
from kclient.admin.scram_types import (
    ScramCredentialInfo,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from kclient.cli.common_options import add_connection_options, client_options, whole_number
from kclient.cli.examples import add_examples
from kclient.cli.output import add_json_option, show, show_errors, table
from kclient.cli.secret_input import add_password_options, read_password
from kclient.common.broker_errors import ResourceNotFoundError
from kclient.common.errors import ConfigError
from kclient.network.sasl.scram import SCRAM_MECHANISMS

_DEFAULT_MECHANISM = "SCRAM-SHA-512"

Credentials = dict[str, tuple[ScramCredentialInfo, ...]]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``kclient users``."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    listing = actions.add_parser("list", help="list every user with its mechanisms")
    add_examples(listing, "kclient users list", "kclient users list --json")
    listing.set_defaults(run=_list)
    describing = actions.add_parser("describe", help="show mechanisms and iteration counts")
    describing.add_argument("user", nargs="+")
    add_examples(describing, "kclient users describe alice")
    describing.set_defaults(run=_describe)
    adding = actions.add_parser("add", help="add a credential that does not exist yet")
    altering = actions.add_parser("alter", help="replace a credential, as for a new password")
    for action, is_new in ((adding, True), (altering, False)):
        _add_credential_options(action)
        action.set_defaults(run=_upsert, is_new=is_new)
    add_examples(
        adding,
        "kclient users add bob --password-file bob.secret",
        "kclient users add bob --mechanism SCRAM-SHA-256 --iterations 8192 "
        "--password-file - < bob.secret",
    )
    add_examples(altering, "kclient users alter alice --password-file alice.secret")
    deleting = actions.add_parser("delete", help="delete credentials of users")
    deleting.add_argument("user", nargs="+")
    deleting.add_argument(
        "--mechanism",
        choices=tuple(SCRAM_MECHANISMS),
        help="delete the credentials of this mechanism only (default: all)",
    )
    add_examples(deleting, "kclient users delete alice --mechanism SCRAM-SHA-512")
    deleting.set_defaults(run=_delete)
    add_json_option(listing)
    add_json_option(describing)
    for action in (listing, describing, adding, altering, deleting):
        add_connection_options(action)


def _add_credential_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("user")
    parser.add_argument(
        "--mechanism",
        choices=tuple(SCRAM_MECHANISMS),
        default=_DEFAULT_MECHANISM,
        help="mechanism of the credential (default: %(default)s)",
    )
    default = ScramCredentialInfo(_DEFAULT_MECHANISM).iterations
    parser.add_argument(
        "--iterations",
        type=whole_number(1),
        default=default,
        help="iteration count, 4096 to 16384 (default: %(default)s)",
    )
    add_password_options(parser)


def _list(options: argparse.Namespace) -> int:
    with AdminClient(client_options(options, ADMIN_CONFIG)) as admin:
        users = admin.describe_user_scram_credentials()
    _show(options, dict(sorted(users.items())))
    return 0


def _describe(options: argparse.Namespace) -> int:
    wanted = list(dict.fromkeys(options.user))
    with AdminClient(client_options(options, ADMIN_CONFIG)) as admin:
        found = {user: _credentials_of(admin, user) for user in wanted}
    missing = [user for user, infos in found.items() if not infos]
    _show(options, {user: infos for user, infos in found.items() if infos})
    for user in missing:
        print(f"kclient users: user {user!r} does not exist", file=sys.stderr)
    return 1 if missing else 0


def _show(
    options: argparse.Namespace, users: Mapping[str, tuple[ScramCredentialInfo, ...]]
) -> None:
    if options.json:
        for user, infos in users.items():
            show(options, "", {"user": user, "credentials": infos})
        return
    rows = [(user, *info) for user, infos in users.items() for info in infos]
    if rows:
        print(table(("user", *ScramCredentialInfo._fields), rows))


def _credentials_of(admin: AdminClient, user: str) -> tuple[ScramCredentialInfo, ...]:
    """Return the credentials of a user, perhaps none."""
    try:
        return admin.describe_user_scram_credentials(user)[user]
    except ResourceNotFoundError:
        return ()


def _upsert(options: argparse.Namespace) -> int:
    user, mechanism = options.user, options.mechanism
    _check_iterations(mechanism, options.iterations)
    with AdminClient(client_options(options, ADMIN_CONFIG)) as admin:
        known = [info.mechanism for info in _credentials_of(admin, user)]
        if options.is_new and mechanism in known:
            return _refuse(f"user {user!r} has a credential for {mechanism}; use alter")
        if not options.is_new and mechanism not in known:
            return _refuse(f"user {user!r} has no credential for {mechanism}; use add")
        password = read_password(options, f"user {user!r}")
        info = ScramCredentialInfo(mechanism, options.iterations)
        admin.alter_user_scram_credentials(UserScramCredentialUpsertion(user, info, password))
    print(f"{'added' if options.is_new else 'altered'} {mechanism} of {user}")
    return 0


def _check_iterations(mechanism: str, iterations: int) -> None:
    least = SCRAM_MECHANISMS[mechanism].least_iterations
    most = SCRAM_MECHANISMS[mechanism].most_iterations
    if not least <= iterations <= most:
        raise ConfigError(f"--iterations: got {iterations}, expected {least} to {most}")


def _refuse(why: str) -> int:
    print(f"kclient users: {why}", file=sys.stderr)
    return 1


def _delete(options: argparse.Namespace) -> int:
    wanted = list(dict.fromkeys(options.user))
    with AdminClient(client_options(options, ADMIN_CONFIG)) as admin:
        found = {user: _credentials_of(admin, user) for user in wanted}
        deletions = [
            UserScramCredentialDeletion(user, info.mechanism)
            for user, infos in found.items()
            for info in infos
            if options.mechanism in (None, info.mechanism)
        ]
        missing = set(wanted) - {deletion.user for deletion in deletions}
        if missing:
            mechanism = options.mechanism or "any mechanism"
            names = ", ".join(repr(user) for user in sorted(missing))
            return _refuse(f"no credential for {mechanism}: {names}; nothing was deleted")
        status = 0
        # A broker refuses two changes of a user in one request.
        for mechanism in SCRAM_MECHANISMS:
            chosen = [each for each in deletions if each.mechanism == mechanism]
            if chosen:
                results = admin.alter_user_scram_credentials(chosen)
                status = max(status, show_errors("users", results))
    if not status:
        print(f"deleted {', '.join(wanted)}")
    return status
