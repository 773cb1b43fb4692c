"""Programs around the project that are not shipped: what `make` calls."""
