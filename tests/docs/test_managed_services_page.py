"""The clients of managed-services.md are created as pasted; no service is contacted."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    load_pem_private_key,
    pkcs12,
)
from cryptography.x509 import load_pem_x509_certificate

from kclient.testing.certificate_authority import CertificateAuthority
from tests.support.checks.document_blocks import all_blocks
from tests.support.processes.child_process import ROOT, script

PROGRAMS = all_blocks(ROOT / "docs" / "how-to" / "managed-services.md", "python")
FILE = re.compile(r'"(/etc/[\w/.]+|\w+\.pem)"')


@pytest.fixture
def files(tmp_path: Path) -> Mapping[str, Path]:
    """Files by the names that the page has for them."""
    authority = CertificateAuthority("authority of the service")
    client = authority.issue("client")
    store = pkcs12.serialize_key_and_certificates(
        None,
        load_pem_private_key(client.key.encode(), None),  # type: ignore[arg-type]  # an EC key
        load_pem_x509_certificate(client.chain.encode()),
        None,
        BestAvailableEncryption(b"store password"),
    )
    contents = {
        "ca.pem": authority.pem.encode(),
        "service.pem": client.pem.encode(),
        "/etc/cluster/ca.crt": authority.pem.encode(),
        "/etc/user/user.p12": store,
        "/etc/user/user.password": b"store password",
    }
    for name, content in contents.items():
        (tmp_path / Path(name).name).write_bytes(content)
    return {name: tmp_path / Path(name).name for name in contents}


@pytest.mark.parametrize(
    "program", PROGRAMS, ids=lambda code: re.findall(r'servers="([^"]+)', code)[0]
)
def test_client_is_created(program: str, files: Mapping[str, Path], tmp_path: Path) -> None:
    code = FILE.sub(lambda found: f'"{files[found[1]]}"', program)
    with script(tmp_path, f"{code}\nproducer.close(0)\nprint('closed')") as process:
        process.finish()
        assert process.stdout == "closed\n"
