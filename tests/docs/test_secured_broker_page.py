"""Commands and code of the page about the security of the companion broker."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

from tests.support.checks.document_blocks import blocks
from tests.support.processes.broker_command import started_with
from tests.support.processes.child_process import ROOT, script

PAGE = ROOT / "docs" / "how-to" / "secure-the-companion-broker.md"
SECTION = "Users with a password"


def test_users_with_a_password(tmp_path: Path) -> None:
    (properties,) = blocks(PAGE, "properties")[SECTION]
    (commands,) = blocks(PAGE, "sh")[SECTION]
    (code,) = blocks(PAGE, "python")[SECTION]
    path = tmp_path / "server.properties"
    path.write_text(
        properties.replace("/var/lib/kclient", str(tmp_path / "data")).replace(":9094", ":0")
    )
    formatting, start = commands.replace("server.properties", str(path)).splitlines()
    program = f"{shlex.quote(sys.executable)} -m kclient"
    subprocess.run(
        ["sh", "-c", formatting.replace("kclient ", f"{program} ")], check=True, cwd=ROOT
    )
    with started_with(tmp_path, shlex.split(start)[2:]) as (servers, broker):
        assert re.fullmatch(r"127\.0\.0\.1:\d+", servers)
        with script(tmp_path, code.replace("127.0.0.1:9094", servers)) as client:
            client.finish()
        broker.interrupt()
        broker.finish()
