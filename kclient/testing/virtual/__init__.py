"""A world in memory, in virtual time: tasks, network and disk of a few machines."""
