"""The command line: python -m integration.foreign_suites.

kafka-python's source distribution holds its integration tests, and they take an address. Others
cannot be run so: aiokafka's holds no tests, and confluent-kafka's none but its verifiable clients,
which tests.support.clients.foreign_group_member replaces.
"""

import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from integration.foreign_suites import kafka_python_suite
from integration.foreign_suites.expectations import KAFKA_PYTHON


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
        outcomes = kafka_python_suite.run(Path(made))
    for name, reason in KAFKA_PYTHON.items():
        print(f"expected to fail: {name}: {reason}")
    passed = sum(outcome == "passed" for outcome in outcomes.values())
    print(f"kafka-python: {passed} of {len(outcomes)} tests pass")
    faults = differences(outcomes, KAFKA_PYTHON)
    for fault in faults:
        print(f"FAULT: {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
