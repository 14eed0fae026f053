"""Apache Kafka's jars, resolved by Maven once per version and kept in a cache directory."""

import os
from pathlib import Path

from integration.harness.maven_jars import MavenJars

POM = Path(__file__).parents[1] / "pom.xml"
SHELL_POM = Path(__file__).with_name("metadata-shell-pom.xml")
"""The metadata shell, which is in no jar that the broker or its other tools need."""


def cache_directory() -> Path:
    """Returns ${KCLIENT_CACHE:-~/.cache/kclient}."""
    configured = os.environ.get("KCLIENT_CACHE")
    return Path(configured) if configured else Path.home() / ".cache" / "kclient"


class KafkaJars:
    """The jars of one version and what they need: by default those of the broker and its tools."""

    def __init__(self, version: str, cache: Path, pom: Path = POM, name: str = "kafka") -> None:
        self.version = version
        options = [f"-Dkafka.version={version}"]
        if int(version.split(".", 1)[0]) >= 4:
            options += ["--activate-profiles", "log4j2"]
        self._jars = MavenJars(f"Apache Kafka {version}", pom, cache / name / version, options)

    @property
    def directory(self) -> Path:
        """The directory of the jars."""
        return self._jars.directory

    @property
    def class_path(self) -> str:
        return f"{self._jars.directory}/*"

    def resolve(self) -> None:
        """Makes sure that the jars are there, by Maven where they are not.

        Raises:
            HarnessError: Maven is missing, or fails; with its output.
        """
        self._jars.resolve()
