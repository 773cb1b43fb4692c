"""Playing scenarios on `agent exec`: each turn is a process."""
