"""Discovery of Apache Kafka: a given address, a container, or its jars with Java.

If none of them works, tests fail with the causes; they are not skipped.
"""

import os
from pathlib import Path

from integration.harness.container_java import ContainerJava
from integration.harness.kafka_jars import KafkaJars, cache_directory
from integration.harness.kafka_runtime import KafkaRuntime
from integration.harness.local_java import LocalJava
from integration.harness.wire_probe import served_apis
from tests.support.checks.waiting import HarnessError

NEWEST = "4.3.1"
VERSIONS = (NEWEST, "3.9.2")
IMAGE = "apache/kafka:{version}"


def given_bootstrap() -> str | None:
    """Returns the address of a running Kafka from KCLIENT_KAFKA_BOOTSTRAP, if it responds.

    Raises:
        HarnessError: the given address does not respond.
    """
    bootstrap = os.environ.get("KCLIENT_KAFKA_BOOTSTRAP")
    if not bootstrap:
        return None
    causes = []
    for address in bootstrap.split(","):
        try:
            served_apis(address.strip(), timeout=10)
        except (OSError, ValueError) as error:
            causes.append(f"{address}: {error}")
        else:
            return bootstrap
    msg = "KCLIENT_KAFKA_BOOTSTRAP: no Kafka responds there:\n  " + "\n  ".join(causes)
    raise HarnessError(msg)


def chosen_versions() -> tuple[str, ...]:
    """Returns the versions to test against: the newest, or those of KCLIENT_KAFKA_VERSIONS.

    The variable has "all" or versions, comma-separated.
    """
    chosen = os.environ.get("KCLIENT_KAFKA_VERSIONS", "")
    if chosen.strip() == "all":
        return VERSIONS
    return tuple(part.strip() for part in chosen.split(",") if part.strip()) or (NEWEST,)


def find_runtime(version: str, directory: Path) -> KafkaRuntime:
    """Returns what can run `version`: a container engine with the image, else Java with the jars.

    Args:
        version: such as "4.3.1".
        directory: below which everything lives that the runtime has to see.

    Raises:
        HarnessError: neither works; with both causes.
    """
    candidates: dict[str, ContainerJava | LocalJava] = {
        "container": ContainerJava(version, IMAGE.format(version=version), directory),
        "java": LocalJava(KafkaJars(version, cache_directory())),
    }
    only = os.environ.get("KCLIENT_KAFKA_RUNTIME")
    if only and only not in candidates:
        msg = f"KCLIENT_KAFKA_RUNTIME: got {only!r}, expected one of {', '.join(candidates)}"
        raise HarnessError(msg)
    causes = []
    for name, candidate in candidates.items():
        if only in {None, "", name}:
            try:
                candidate.prepare()
            except HarnessError as error:
                causes.append(f"{name}: {error}")
            else:
                return candidate
    msg = f"Apache Kafka {version} cannot be run here:\n  " + "\n  ".join(causes)
    msg += "\nGive the address of a running one in KCLIENT_KAFKA_BOOTSTRAP, start a container"
    msg += " engine, or install Java 17 or newer and Maven."
    raise HarnessError(msg)
