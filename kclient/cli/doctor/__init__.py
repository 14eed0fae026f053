"""``kclient doctor``: finds out why a client cannot work with a cluster."""
