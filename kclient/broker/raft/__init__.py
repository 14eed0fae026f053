"""Quorum of controllers: elections, replication and snapshots of the metadata log (KRaft)."""
