"""Search for generated cases that a server fails (`fuzz`), and missed faults (`mutation`)."""
