"""Speaking to a server by hand: `harness connect`."""
