"""Partitions, their replicas, and delayed operations."""
