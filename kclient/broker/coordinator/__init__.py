"""Coordinators: who shares a group's work, and how far it has come."""
