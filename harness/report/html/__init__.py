"""A run as one HTML file that people look at: no network, no build step."""
