"""Ranges of versions."""

import pytest

from kclient.protocol.versions import NO_VERSIONS, UNBOUNDED, VersionRange


@pytest.mark.parametrize("text", ["0+", "3+", "0-12", "4", "none"])
def test_version_ranges_keep_their_form(text: str) -> None:
    assert str(VersionRange.parse(text)) == text


def test_version_ranges() -> None:
    assert VersionRange.parse("3+") == (3, UNBOUNDED)
    assert VersionRange.parse("3-5") == (3, 5)
    assert [version for version in range(8) if version in VersionRange.parse("3-5")] == [3, 4, 5]
    assert not any(version in NO_VERSIONS for version in range(-1, 9))
