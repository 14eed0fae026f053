"""Import of the greenlet package, which only simulations need."""

try:
    from greenlet import GreenletExit, getcurrent, greenlet
except ImportError as missing:
    raise ImportError(
        "kclient.testing.virtual needs the 'greenlet' package (pip install 'kclient[testing]')"
    ) from missing

__all__ = ["GreenletExit", "getcurrent", "greenlet"]
