"""Apache Kafka's jars, resolved by Maven once per version and kept in a cache directory."""

import os
from pathlib import Path

from integration.harness.maven_jars import MavenJars

POM = Path(__file__).parents[1] / "pom.xml"


def cache_directory() -> Path:
    """Returns ${KCLIENT_CACHE:-~/.cache/kclient}."""
    configured = os.environ.get("KCLIENT_CACHE")
    return Path(configured) if configured else Path.home() / ".cache" / "kclient"


class KafkaJars:
    """The jars of one version: the broker, its tools and what they need."""

    def __init__(self, version: str, cache: Path) -> None:
        self.version = version
        options = [f"-Dkafka.version={version}"]
        if int(version.split(".", 1)[0]) >= 4:
            options += ["--activate-profiles", "log4j2"]
        home = cache / "kafka" / version
        self._jars = MavenJars(f"Apache Kafka {version}", POM, home, options)

    @property
    def class_path(self) -> str:
        return f"{self._jars.directory}/*"

    def resolve(self) -> None:
        """Makes sure that the jars are there, by Maven where they are not.

        Raises:
            HarnessError: Maven is missing, or fails; with its output.
        """
        self._jars.resolve()
