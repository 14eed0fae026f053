"""Copies of topics that must hold each record once, whatever dies meanwhile."""
