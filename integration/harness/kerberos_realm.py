"""A Kerberos realm with a key distribution center of MIT Kerberos on this machine."""

import os
import shutil
import subprocess
from pathlib import Path

from integration.harness.free_port import free_port
from tests.support.checks.closing import Closing
from tests.support.checks.waiting import HarnessError
from tests.support.processes.child_process import ChildProcess

REALM = "KCLIENT.TEST"
_TIMEOUT = 30.0
_SYSTEM_PROGRAMS = "/usr/local/sbin:/usr/sbin:/sbin"

_KRB5_CONF = """\
[libdefaults]
default_realm = {realm}
dns_lookup_kdc = false
dns_canonicalize_hostname = false
rdns = false
udp_preference_limit = 1
[realms]
{realm} = {{
  kdc = 127.0.0.1:{port}
}}
[domain_realm]
localhost = {realm}
"""
_KDC_CONF = """\
[kdcdefaults]
kdc_listen = ""
kdc_tcp_listen = 127.0.0.1:{port}
[realms]
{realm} = {{
  database_name = {directory}/principal
  key_stash_file = {directory}/stash
  acl_file = {directory}/acl
  supported_enctypes = aes256-cts-hmac-sha1-96:normal
}}
"""


class KerberosRealm(Closing):
    """The realm; the end of the with block ends its server.

    Attributes:
        configuration: File for the variable KRB5_CONFIG of clients and brokers.
    """

    def __init__(self, directory: Path) -> None:
        """Create the database and start the server.

        Raises:
            HarnessError: A program of MIT Kerberos is missing, or fails.
        """
        directory.mkdir()
        self._directory = directory
        self.configuration = directory / "krb5.conf"
        profile = directory / "kdc.conf"
        values = {"realm": REALM, "port": free_port(), "directory": directory}
        self.configuration.write_text(_KRB5_CONF.format_map(values))
        profile.write_text(_KDC_CONF.format_map(values))
        self._environment = {
            **os.environ,
            "KRB5_CONFIG": str(self.configuration),
            "KRB5_KDC_PROFILE": str(profile),
        }
        self._run("kdb5_util", "create", "-s", "-P", "master", "-r", REALM)
        server = [_program("krb5kdc"), "-n"]
        self._server = ChildProcess(
            server, directory, name="krb5kdc", environment=self._environment, is_guarded=True
        )
        try:
            self._server.wait_for("starting")
        except BaseException:
            self.close()
            raise

    def keytab(self, *principals: str) -> Path:
        """Add principals; return a file with their keys."""
        path = self._directory / f"{principals[0].replace('/', '-')}.keytab"
        for principal in principals:
            self._run("kadmin.local", "-q", f"addprinc -randkey {principal}")
            self._run("kadmin.local", "-q", f"ktadd -k {path} {principal}")
        return path

    def ticket_cache(self, principal: str, keytab: Path, *, life: str = "1h") -> Path:
        """Log in, as a user with kinit; return the file with the ticket."""
        path = self._directory / f"{principal}.cache"
        self._run("kinit", "-l", life, "-k", "-t", str(keytab), "-c", str(path), principal)
        return path

    def close(self) -> None:
        """End the server."""
        self._server.kill()
        self._server.close_input()

    def _run(self, name: str, *arguments: str) -> None:
        done = subprocess.run(
            [_program(name), *arguments],
            check=False,
            capture_output=True,
            text=True,
            env=self._environment,
            timeout=_TIMEOUT,
        )
        if done.returncode:
            msg = f"{name} {' '.join(arguments)} failed:\n{done.stdout}{done.stderr}"
            raise HarnessError(msg)


def _program(name: str) -> str:
    path = f"{os.environ.get('PATH', os.defpath)}:{_SYSTEM_PROGRAMS}"
    found = shutil.which(name, path=path)
    if found is None:
        msg = (
            f"there is no {name} in {path}; Debian has it in krb5-kdc, krb5-admin-server, krb5-user"
        )
        raise HarnessError(msg)
    return found
