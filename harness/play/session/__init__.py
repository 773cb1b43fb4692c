"""Playing scenarios on a server of the session protocol."""
