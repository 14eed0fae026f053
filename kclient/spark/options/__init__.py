"""Options of the source and the sink, as Spark passes them: strings with lower-case names."""
