"""Commands for records: ``kclient produce``, ``consume`` and ``records``."""
