"""Jars that a POM names, resolved by Maven once and kept in a directory."""

import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from integration.harness.errors import HarnessError

_TIMEOUT = 600.0


class MavenJars:
    """What `mvn dependency:copy-dependencies` brings for one POM and one set of options."""

    def __init__(self, what: str, pom: Path, home: Path, options: Sequence[str] = ()) -> None:
        """Says which jars; nothing is looked up yet.

        Args:
            what: the jars' name in errors, such as "Apache Kafka 4.3.1".
            pom: the POM whose dependencies they are.
            home: the directory for them; whatever else decides what they are is in its name.
            options: Maven's, such as `-Dkafka.version=4.3.1`.
        """
        self._what = what
        self._pom = pom
        self._home = home
        self._options = options

    @property
    def directory(self) -> Path:
        """Where the jars are once they are resolved."""
        return self._home / "libs"

    def resolve(self) -> None:
        """Makes sure that the jars are there, by Maven where they are not.

        Raises:
            HarnessError: when there is no Maven, or it fails; with its own words.
        """
        digest = hashlib.sha256(self._pom.read_bytes()).hexdigest()
        stamp = self._home / "pom.sha256"
        if stamp.is_file() and stamp.read_text() == digest:
            return
        maven = shutil.which("mvn")
        if maven is None:
            msg = f"{self._what} is not in {self._home}, and no mvn is there to get it"
            raise HarnessError(msg)
        self._home.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self._home.parent, prefix="resolving-") as fresh:
            self._copy_dependencies(maven, Path(fresh) / "new" / "libs")
            (Path(fresh) / "new" / "pom.sha256").write_text(digest)
            self._move_in(Path(fresh) / "new", Path(fresh) / "old", digest)

    def _copy_dependencies(self, maven: str, target: Path) -> None:
        command = [maven, "--quiet", "--batch-mode", "--file", str(self._pom), *self._options]
        # A look-up that failed once is remembered by Maven; --update-snapshots makes it ask again.
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
            said = (done.stdout + done.stderr)[-2000:]
            msg = f"Maven could not resolve {self._what}:\n{said}"
            raise HarnessError(msg)

    def _move_in(self, new: Path, old: Path, digest: str) -> None:
        """Renames are atomic: another process sees all jars or none, and may be first."""
        try:
            new.rename(self._home)
        except OSError:
            if (self._home / "pom.sha256").read_text() != digest:
                self._home.rename(old)
                new.rename(self._home)
