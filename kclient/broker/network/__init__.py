"""The broker's front: connections in, requests out to the handlers, responses back in order."""
