"""Apache Kafka's jars, resolved by Maven once per version and kept in a cache directory."""

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from integration.harness.errors import HarnessError

POM = Path(__file__).parents[1] / "pom.xml"
_TIMEOUT = 600.0


def cache_directory() -> Path:
    """Returns ${KCLIENT_CACHE:-~/.cache/kclient}."""
    configured = os.environ.get("KCLIENT_CACHE")
    return Path(configured) if configured else Path.home() / ".cache" / "kclient"


class KafkaJars:
    """The jars of one version: the broker, its tools and what they need."""

    def __init__(self, version: str, cache: Path) -> None:
        self.version = version
        self._home = cache / "kafka" / version

    @property
    def class_path(self) -> str:
        return f"{self._home / 'libs'}/*"

    def resolve(self) -> None:
        """Makes sure that the jars are there, by Maven where they are not.

        Raises:
            HarnessError: when there is no Maven, or it fails; with its own words.
        """
        digest = hashlib.sha256(POM.read_bytes()).hexdigest()
        stamp = self._home / "pom.sha256"
        if stamp.is_file() and stamp.read_text() == digest:
            return
        maven = shutil.which("mvn")
        if maven is None:
            msg = f"{self.version} is not in {self._home}, and no mvn is there to get them"
            raise HarnessError(msg)
        self._home.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self._home.parent, prefix="resolving-") as fresh:
            self._copy_dependencies(maven, Path(fresh) / "new" / "libs")
            (Path(fresh) / "new" / "pom.sha256").write_text(digest)
            self._move_in(Path(fresh) / "new", Path(fresh) / "old", digest)

    def _copy_dependencies(self, maven: str, target: Path) -> None:
        command = [maven, "--quiet", "--batch-mode", "--file", str(POM)]
        command += [f"-Dkafka.version={self.version}", f"-DoutputDirectory={target}"]
        if int(self.version.split(".")[0]) >= 4:
            command += ["--activate-profiles", "log4j2"]
        # A look-up that failed once is remembered by Maven; --update-snapshots makes it ask again.
        command += ["--update-snapshots", "dependency:copy-dependencies"]
        try:
            done = subprocess.run(
                command,
                check=False,
                capture_output=True,
                text=True,
                timeout=_TIMEOUT,
                stdin=subprocess.DEVNULL,
            )
        except subprocess.TimeoutExpired as error:
            msg = f"Maven did not resolve Apache Kafka {self.version} within {_TIMEOUT:g} s"
            raise HarnessError(msg) from error
        if done.returncode:
            said = (done.stdout + done.stderr)[-2000:]
            msg = f"Maven could not resolve Apache Kafka {self.version}:\n{said}"
            raise HarnessError(msg)

    def _move_in(self, new: Path, old: Path, digest: str) -> None:
        """Renames are atomic: another process sees all jars or none, and may be first."""
        try:
            new.rename(self._home)
        except OSError:
            if (self._home / "pom.sha256").read_text() != digest:
                self._home.rename(old)
                new.rename(self._home)
