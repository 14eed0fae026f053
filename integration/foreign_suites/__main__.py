"""The command line: python -m integration.foreign_suites.

The distributions of kafka-python and franz-go hold their integration tests, and these take an
address. Others cannot be run so: aiokafka's holds no tests, and confluent-kafka's none but its
verifiable clients, which tests.support.clients.foreign_group_member replaces.
"""

import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from integration.foreign_suites import franz_go_suite, kafka_python_suite
from integration.foreign_suites.expectations import FAILING


def differences(outcomes: Mapping[str, str], failing: Mapping[str, str]) -> list[str]:
    """Return the tests whose outcome is not the expected one."""
    found = [
        f"{name}: {outcome}"
        for name, outcome in outcomes.items()
        if outcome in {"failure", "error"} and name not in failing
    ]
    found += [
        f"{name}: {outcomes.get(name, 'not there')}, although: {reason}"
        for name, reason in failing.items()
        if outcomes.get(name) not in {"failure", "error"}
    ]
    return found


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="kclient-foreign-") as made:
        outcomes = {
            **kafka_python_suite.run(Path(made)),
            **franz_go_suite.run(Path(made) / "franz-go"),
        }
    for name, reason in FAILING.items():
        print(f"expected to fail: {name}: {reason}")
    passed = sum(outcome == "passed" for outcome in outcomes.values())
    print(f"{passed} of {len(outcomes)} tests pass")
    faults = differences(outcomes, FAILING)
    for fault in faults:
        print(f"FAULT: {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
