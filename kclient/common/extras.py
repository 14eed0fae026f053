"""Texts for packages that an extra of the distribution would install."""

DISTRIBUTION = "kclient-kafka"
"""Name of the distribution; the name ``kclient`` on the package index is another project's."""


def missing_package(feature: str, package: str, extra: str) -> str:
    """Return the error text for a feature whose package is not installed.

    Args:
        feature: What needs the package.
        package: Distribution to install.
        extra: Extra of kclient that contains the package.
    """
    return (
        f"{feature}: the {package!r} package is missing; pip install {package} "
        f"(the extra {extra!r} of {DISTRIBUTION} contains it)"
    )
