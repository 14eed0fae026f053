"""Registration of the data source: Spark imports every top-level module named ``pyspark_*``.

An exception here would hide the data sources of other packages. So this module is empty if the
import fails, and ``format("kclient")`` is then unknown to Spark.
"""

import logging

try:
    from kclient.spark.data_source import KclientDataSource as DefaultSource

    __all__ = ["DefaultSource"]
except Exception as error:  # noqa: BLE001 (a failure must not hide other data sources)
    logging.getLogger(__name__).warning('format("kclient") is not available: %s', error)
