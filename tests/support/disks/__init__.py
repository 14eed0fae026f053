"""Disks and logs that fail, end or crash at a chosen operation."""
