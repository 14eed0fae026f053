"""Offsets as Spark keeps them, and what users say of where to start and to end. Pure."""
