"""Search: generated cases that a server fails (`fuzz`), faults that rules miss (`mutation`)."""
