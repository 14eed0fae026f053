"""Journey of records: the time of each stage, from `send` to the commit of the consumer.

``with Journey(producer, consumer) as journey:`` traces some of the records that are sent in the
block, and all polls;
``print(as_table(journey.report()))`` prints the statistics.
"""

from kclient.journey.journey import Journey
from kclient.journey.picture import as_svg
from kclient.journey.report import Report, Section, StageTimes
from kclient.journey.table import as_table

__all__ = ["Journey", "Report", "Section", "StageTimes", "as_svg", "as_table"]
