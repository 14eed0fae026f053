"""``kclient groups``: shows, resets and deletes consumer groups."""
