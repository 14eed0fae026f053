"""From send() to an acknowledged record."""
