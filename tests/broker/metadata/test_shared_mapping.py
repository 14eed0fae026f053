"""Mappings that are copied at the first change."""

from kclient.broker.metadata.shared_mapping import SharedMapping


def test_an_unchanged_mapping_is_not_copied() -> None:
    base = {1: "a"}
    mapping = SharedMapping(base)
    assert mapping.remove(2) is None
    assert mapping.get(2) is None
    assert 1 in mapping
    assert mapping.freeze() is base


def test_changes_copy_once_until_the_next_freeze() -> None:
    base = {1: "a", 2: "b"}
    mapping = SharedMapping(base)
    mapping.set(3, "c")
    copied = mapping.current
    assert mapping.remove(1) == "a"
    assert mapping.current is copied
    frozen = mapping.freeze()
    mapping.set(4, "d")
    assert base == {1: "a", 2: "b"}
    assert frozen == {2: "b", 3: "c"}
    assert mapping.current == {2: "b", 3: "c", 4: "d"}
