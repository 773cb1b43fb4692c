"""Playing scenarios on an SDK, through its driver program."""
