"""Identity of a data directory."""

from pathlib import Path

import pytest

from kclient.broker.server.broker_storage import (
    MetaProperties,
    read_meta_properties,
    write_meta_properties,
)
from kclient.common.errors import ConfigError
from kclient.common.system_files import SystemFiles


def test_meta_properties(tmp_path: Path) -> None:
    files = SystemFiles()
    assert read_meta_properties(files, tmp_path) is None
    written = MetaProperties("abc=def", 3, b"\5" * 16)
    write_meta_properties(files, tmp_path, written)
    assert read_meta_properties(files, tmp_path) == written
    (tmp_path / "meta.properties").write_text("version=0\nbroker.id=1\n")
    with pytest.raises(ConfigError, match=r"expected cluster\.id"):
        read_meta_properties(files, tmp_path)
