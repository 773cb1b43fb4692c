"""Running of turns, from the user's input to `turn/completed`."""
