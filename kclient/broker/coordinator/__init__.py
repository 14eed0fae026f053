"""Coordinators of groups."""
