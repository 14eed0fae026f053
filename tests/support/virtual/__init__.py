"""Brokers, groups and producers in virtual time."""
