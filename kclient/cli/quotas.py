"""Quotas of users, clients and addresses, as ``kclient configs`` shows and changes them."""

import argparse
import math
from collections.abc import Iterable, Mapping

from kclient.admin.admin_client import AdminClient
from kclient.admin.admin_core import ADMIN_CONFIG
from kclient.admin.admin_types import (
    ClientQuotaEntity,
    ClientQuotaFilterComponent,
    QuotaMatchType,
)
from kclient.cli.common_options import client_options, key_values
from kclient.cli.output import show, show_errors, show_rows, succeeded
from kclient.common.errors import ConfigError

_TYPES = {"user": "user", "client-id": "client", "ip": "ip"}
"""Options by type of entity; ``--user-defaults`` is for all users without a quota of their own."""


def add_quota_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that name an entity with quotas."""
    for kind, what in (
        ("user", "a user"),
        ("client-id", "a client.id, with --user those of the user"),
        ("ip", "an address"),
    ):
        chosen = parser.add_mutually_exclusive_group()
        chosen.add_argument(f"--{kind}", metavar="NAME", help=f"quotas of {what}")
        chosen.add_argument(
            f"--{_TYPES[kind]}-defaults",
            action="store_true",
            help=f"quotas of every {kind} without its own",
        )


def quota_entity(options: argparse.Namespace) -> ClientQuotaEntity | None:
    """Return the entity that the options name, or None."""
    entries: dict[str, str | None] = {}
    for kind, option in _TYPES.items():
        name = getattr(options, kind.replace("-", "_"))
        if name is not None or getattr(options, f"{option}_defaults"):
            entries[kind] = name
    return ClientQuotaEntity.of(entries) if entries else None


def show_quotas(options: argparse.Namespace, entity: ClientQuotaEntity, keys: Iterable[str]) -> int:
    """Print the quotas of an entity, all of them or some."""
    wanted = set(keys)
    components = [
        ClientQuotaFilterComponent(
            kind, QuotaMatchType.DEFAULT if name is None else QuotaMatchType.EXACT, name
        )
        for kind, name in entity.entries
    ]
    with AdminClient(client_options(options, ADMIN_CONFIG)) as admin:
        found = admin.describe_client_quotas(components, strict=True)
    rows = [
        {
            "entity": dict(each.entries) if options.json else quota_entity_name(each),
            "name": key,
            "value": value,
        }
        for each, quotas in found.items()
        for key, value in sorted(quotas.items())
        if not wanted or key in wanted
    ]
    show_rows(options, ("entity", "name", "value"), rows)
    return 0


def quotas_of(pairs: list[str]) -> dict[str, float | None]:
    """Return quotas of KEY=VALUE.

    Raises:
        ConfigError: A value is no number.
    """
    quotas: dict[str, float | None] = {}
    for key, text in key_values("configs set", pairs).items():
        try:
            value = float(str(text))
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise ConfigError(f"{key}: got {text!r:.80}, expected a number")
        quotas[key] = value
    return quotas


def alter_quotas(
    options: argparse.Namespace, entity: ClientQuotaEntity, quotas: Mapping[str, float | None]
) -> int:
    """Set quotas of an entity; a quota None is removed."""
    with AdminClient(client_options(options, ADMIN_CONFIG)) as admin:
        results = admin.alter_client_quotas({entity: quotas}, validate_only=options.dry_run)
    done = "could alter" if options.dry_run else "altered"
    for each, _ in succeeded(results):
        fields = {
            "entity": dict(each.entries),
            "names": list(quotas),
            "dry_run": options.dry_run,
        }
        show(options, f"{done} {', '.join(quotas)} of {quota_entity_name(each)}", fields)
    return show_errors("configs", results)


def quota_entity_name(entity: ClientQuotaEntity) -> str:
    """Return an entity as text, such as ``user alice, client-id default``."""
    return ", ".join(
        f"{kind} {'default' if name is None else name}" for kind, name in entity.entries
    )
