"""Every error that kclient raises, in one place to import from.

`KafkaError` is the root. docs/reference/errors.md lists every class: when it is raised, and what to
do then.
"""

from kclient.common.broker_errors import *  # noqa: F403 (a table of a hundred classes)
from kclient.common.errors import *  # noqa: F403 (the families they belong to)
from kclient.consumer.errors import *  # noqa: F403 (what only consumers raise)
from kclient.producer.errors import *  # noqa: F403 (what only producers raise)
from kclient.record.errors import *  # noqa: F403 (what a deserializer's error becomes)
