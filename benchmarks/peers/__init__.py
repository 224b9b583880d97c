"""One runner per engine: reads a job as JSON from standard input, writes what it measured to standard output."""
