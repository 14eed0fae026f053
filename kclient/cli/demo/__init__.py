"""``kclient demo``: real flights through a producer, the companion broker and a consumer group."""
