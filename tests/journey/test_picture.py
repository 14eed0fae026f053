"""Picture of a report."""

from xml.etree import ElementTree as ET

import pytest

from kclient.journey.picture import as_svg
from kclient.journey.report import Report, Section
from tests.journey.test_report import section, trace

SVG = "{http://www.w3.org/2000/svg}"


def rectangles(root: ET.Element, kind: str) -> list[ET.Element]:
    return [each for each in root.iter(f"{SVG}rect") if each.get("class") == kind]


def parsed(*sections: Section) -> ET.Element:
    return ET.fromstring(as_svg(Report(sections)))  # noqa: S314 (our own text)


@pytest.fixture
def found() -> Section:
    return section([trace(1.0, 3.0), trace(2.0, 30.0), trace(2.0, 3.0)])


def test_picture_has_a_bar_for_each_stage_and_the_whole(found: Section) -> None:
    bars = rectangles(parsed(found), "client")
    first, second, whole = ((float(bar.attrib["x"]), float(bar.attrib["width"])) for bar in bars)
    assert second[0] == pytest.approx(first[0] + first[1], abs=0.2)
    assert whole[0] == first[0]
    assert whole[1] == pytest.approx(first[1] + second[1], abs=0.2)
    assert second[1] == pytest.approx(1.5 * first[1], abs=0.2)


def test_histogram_has_a_column_for_each_range_of_values(found: Section) -> None:
    bins = rectangles(parsed(found), "bin")
    assert len(bins) == 2 + 2 + 3  # first: 1 and 2 ms; second: 3 and 30; in all: 4, 5 and 32


def test_picture_is_readable_on_dark_backgrounds(found: Section) -> None:
    text = as_svg(Report([found]))
    assert "prefers-color-scheme: dark" in text
    assert found.title in text


def test_sections_do_not_overlap(found: Section) -> None:
    one = parsed(found)
    two = parsed(found, found)
    assert len(rectangles(two, "client")) == 2 * len(rectangles(one, "client"))
    tops = [float(bar.attrib["y"]) for bar in rectangles(two, "client")]
    assert tops == sorted(set(tops))
