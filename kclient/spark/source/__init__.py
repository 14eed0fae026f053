"""The source: planning of offset ranges on the driver, and the tasks that read them."""
