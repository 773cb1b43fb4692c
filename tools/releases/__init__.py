"""Changes from release to release of a shipping server: `make releases`."""
