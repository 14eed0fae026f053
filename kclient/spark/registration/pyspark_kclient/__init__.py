"""Found by Spark, which imports every top-level module named ``pyspark_*`` to look for sources.

An error in here would hide the sources of all others, so there is none: without what the source
needs, this module is empty, and ``format("kclient")`` is unknown.
"""

import logging

try:
    from kclient.spark.data_source import KclientDataSource as DefaultSource

    __all__ = ["DefaultSource"]
except Exception as error:  # noqa: BLE001 (whatever is wrong here must not harm other sources)
    logging.getLogger(__name__).warning('format("kclient") cannot be had: %s', error)
