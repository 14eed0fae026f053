"""Partitions and their replicas, and the operations that wait for them."""
