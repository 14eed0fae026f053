"""Modules of kclient have a test file of their name, in the folder of their package."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# Folders and modules of data alone, with the test file that covers them.
DATA = {
    "admin/admin_base.py": "admin/test_admin_client.py",
    "admin/admin_types.py": "admin/test_topic_calls.py",
    "admin/cluster_methods.py": "admin/test_cluster_arguments.py",
    "broker/log/log_offset_metadata.py": "broker/log/test_log_appender.py",
    "broker/replication/fetch_params.py": "broker/replication/test_partition.py",
    "client/manual_metadata_updater.py": "client/test_network_client.py",
    "common/config_aliases.py": "bad_input/test_option_hints.py",
    "common/runtime.py": "common/test_waiting.py",
    "common/version.py": "client/test_api_versions_negotiator.py",
    "network/authenticator.py": "network/test_kafka_channel.py",
    "producer/kafka_client.py": "producer/test_transactional_requests.py",
    "protocol/messages": "protocol/test_round_trip.py",
    "record/record.py": "record/test_record_batch.py",
    "spark/sink/delivery.py": "spark/sink/test_write_errors.py",
}


def is_data(module: Path) -> bool:
    """Return whether another test file covers a module, because it is data."""
    return any(str(path) in DATA for path in (module, *module.parents))


def modules_without_tests() -> list[str]:
    """Return the modules without ``tests/<package>/…/test_<module>.py``."""
    missing: list[str] = []
    for module in sorted((ROOT / "kclient").rglob("*.py")):
        path = module.relative_to(ROOT / "kclient")
        if len(path.parts) == 1 or module.stem.startswith("_"):
            continue
        package = path.parts[0]
        if not is_data(path) and not any(
            (ROOT / "tests" / package).rglob(f"test_{module.stem}.py")
        ):
            missing.append(str(path))
    return missing


def test_every_module_has_a_test_file_of_its_name() -> None:
    assert modules_without_tests() == []


@pytest.mark.parametrize(("data", "test"), DATA.items(), ids=DATA)
def test_data_is_named_by_its_test_file(data: str, test: str) -> None:
    path, text = ROOT / "kclient" / data, (ROOT / "tests" / test).read_text()
    names = {".".join(("kclient", *Path(data).with_suffix("").parts))}
    if path.is_file():
        tree = ast.parse(path.read_text())
        names |= {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    assert path.exists()
    assert any(re.search(rf"\b{re.escape(name)}\b", text) for name in names), names
