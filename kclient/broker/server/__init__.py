"""What a broker is made of and how it answers each API."""
