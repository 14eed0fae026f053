"""The kclient command."""
