"""Errors, value types, configuration, metrics and the runtime, common to all packages."""
