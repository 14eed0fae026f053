"""Examples of the pages about tests with faults, with security and of failover."""

from pathlib import Path
from typing import Any

import pytest

from kclient.testing import EmbeddedCluster
from tests.support.checks.document_blocks import blocks

HOW_TO = Path(__file__).parents[2] / "docs" / "how-to"


def examples_of(page: str) -> dict[str, str]:
    return {heading: code for heading, (code,) in blocks(HOW_TO / page, "python").items()}


EXAMPLES = examples_of("test-with-faults.md")
TESTS = {
    **EXAMPLES,
    **examples_of("test-with-security.md"),
    **examples_of("test-failover.md"),
}


def run(code: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(code, names)  # noqa: S102 (our own document)
    return names


@pytest.mark.parametrize("heading", [one for one, code in TESTS.items() if "def test_" in code])
def test_example(heading: str) -> None:
    names = run(TESTS[heading])
    (example,) = (value for name, value in names.items() if name.startswith("test_"))
    example()


def test_fixtures() -> None:
    code = EXAMPLES["Fixtures"].replace("@pytest.fixture", "# @pytest.fixture")
    names = run(code)
    clusters = names["cluster"]()
    cluster = next(clusters)
    proxies = names["proxy"](cluster)
    assert next(proxies).bootstrap_servers != cluster.bootstrap_servers
    assert [*proxies, *clusters] == []


def test_proxy_for_another_broker(capsys: pytest.CaptureFixture[str]) -> None:
    code = EXAMPLES["Apache Kafka and other clients"]
    assert "kafka.example:9092" in code
    with EmbeddedCluster() as cluster:
        run(code.replace("kafka.example:9092", cluster.bootstrap_servers))
    assert capsys.readouterr().out.startswith("127.0.0.1:")
