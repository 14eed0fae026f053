"""Exactly-once loops: records are consumed, processed and produced in transactions."""

from kclient.transactions.transactional_loop import TransactionalLoop

__all__ = ["TransactionalLoop"]
