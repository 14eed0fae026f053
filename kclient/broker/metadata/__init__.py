"""Cluster metadata: images, their changes, and the records that make them."""
