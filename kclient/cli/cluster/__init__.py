"""``kclient cluster``: starts a cluster on this machine, and describes any other."""
