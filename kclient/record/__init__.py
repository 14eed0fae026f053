"""Record batches: the bytes of records, compressed or not. Pure."""
