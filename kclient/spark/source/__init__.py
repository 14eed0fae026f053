"""The source: which offsets a query reads, how they are shared out, and how a task reads them."""
