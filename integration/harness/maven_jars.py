"""Jars of a POM, resolved once by Maven and cached in a directory."""

import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.support.checks.waiting import HarnessError

_TIMEOUT = 600.0


class MavenJars:
    """The jars that `mvn dependency:copy-dependencies` copies for a POM and options."""

    def __init__(self, what: str, pom: Path, home: Path, options: Sequence[str] = ()) -> None:
        """Describes the jars without resolving them.

        Args:
            what: their name in errors, such as "Apache Kafka 4.3.1".
            pom: the POM with the dependencies.
            home: the directory for them, one for each set of options.
            options: options of Maven, such as `-Dkafka.version=4.3.1`.
        """
        self._what = what
        self._pom = pom
        self._home = home
        self._options = options

    @property
    def directory(self) -> Path:
        """The directory of the resolved jars."""
        return self._home / "libs"

    def resolve(self) -> None:
        """Resolves the jars with Maven unless they exist.

        Raises:
            HarnessError: there is no Maven, or it fails; with its output.
        """
        digest = hashlib.sha256(self._pom.read_bytes()).hexdigest()
        stamp = self._home / "pom.sha256"
        if stamp.is_file() and stamp.read_text() == digest:
            return
        maven = shutil.which("mvn")
        if maven is None:
            msg = f"{self._what} is not in {self._home}, and there is no mvn to resolve it"
            raise HarnessError(msg)
        self._home.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self._home.parent, prefix="resolving-") as fresh:
            self._copy_dependencies(maven, Path(fresh) / "new" / "libs")
            (Path(fresh) / "new" / "pom.sha256").write_text(digest)
            self._install(Path(fresh) / "new", Path(fresh) / "old", digest)

    def _copy_dependencies(self, maven: str, target: Path) -> None:
        command = [maven, "--quiet", "--batch-mode", "--file", str(self._pom), *self._options]
        # Maven caches failed lookups; --update-snapshots repeats them.
        command += [f"-DoutputDirectory={target}", "--update-snapshots"]
        command.append("dependency:copy-dependencies")
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
            msg = f"Maven did not resolve {self._what} within {_TIMEOUT:g} s"
            raise HarnessError(msg) from error
        if done.returncode:
            output = (done.stdout + done.stderr)[-2000:]
            msg = f"Maven could not resolve {self._what}:\n{output}"
            raise HarnessError(msg)

    def _install(self, new: Path, old: Path, digest: str) -> None:
        """Moves the jars to their place by atomic renames; another process may be first."""
        try:
            new.rename(self._home)
        except OSError:
            if (self._home / "pom.sha256").read_text() != digest:
                self._home.rename(old)
                new.rename(self._home)
