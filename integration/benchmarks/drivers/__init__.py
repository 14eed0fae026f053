"""One module per client. Each function is a whole program, as its users would tune and write it.

A producer sends one record to warm up, then times the rest until all are acknowledged; it returns
how many the client says were delivered. A consumer times from the first records on; it reads value
and offset of each record.
"""
