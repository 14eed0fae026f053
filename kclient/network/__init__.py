"""The only sockets: selector, channels, transports. Used by clients and by the broker alike."""
