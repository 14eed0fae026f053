"""The demonstration succeeds and prints its steps."""

import re
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.campaign
@pytest.mark.timeout(240)
@pytest.mark.parametrize("security", ["plaintext", "sasl_ssl"])
def test_demo(security: str, tmp_path: Path) -> None:
    arguments = ["demo", "--data-dir", str(tmp_path), "--security", security]
    done = subprocess.run(
        [sys.executable, "-m", "kclient.cli.main", *arguments],
        check=False,
        capture_output=True,
        text=True,
        timeout=220,
        cwd=Path(__file__).parents[2],
    )
    shown = done.stdout
    assert done.returncode == 0, shown + done.stderr
    assert done.stderr == ""
    assert f", {security.upper()}, process " in shown
    assert "every record acknowledged" in shown
    assert "killed member 1 (SIGKILL)" in shown
    lost = re.search(r"lost (\d+), read again after the kill ([\d,]+)", shown)
    assert lost is not None, shown
    assert lost.group(1) == "0"
    assert "committed by the group: 336,776 of 336,776" in shown
    carriers = [line for line in shown.splitlines() if re.search(r" min   (yes|NO)", line)]
    assert len(carriers) == 16
    assert all(line.endswith("yes") for line in carriers)
    assert sum(int(line[31:39].replace(",", "")) for line in carriers) == 336_776
    assert len(list((tmp_path / "data").glob("flights-*/*.log"))) == 6
