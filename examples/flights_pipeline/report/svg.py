"""Elements of SVG and HTML as text, with escaped contents."""

from html import escape


def tag(name: str, content: str = "", **attributes: str | float) -> str:
    """Return an element.

    Args:
        name: Name of the element.
        content: Elements or escaped text.
        attributes: Attributes by name; ``_`` becomes ``-``, and a trailing one is removed.
    """
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_text(value)}"'
        for key, value in attributes.items()
    )
    return f"<{name}{given}>{content}</{name}>"


def text(content: str, x: float, y: float, **attributes: str | float) -> str:
    """Return a text at a place."""
    return tag("text", escape(content), x=x, y=y, **attributes)


def tooltip(content: str) -> str:
    """Return a tooltip."""
    return tag("title", escape(content))


def drawing(width: int, height: int, label: str, *elements: str) -> str:
    """Return a drawing that scales with the page."""
    return tag(
        "svg",
        "\n".join(elements),
        viewBox=f"0 0 {width} {height}",
        role="img",
        aria_label=label,
    )


def _text(value: str | float) -> str:
    return escape(f"{value:.1f}" if isinstance(value, float) else str(value))
