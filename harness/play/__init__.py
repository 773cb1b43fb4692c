"""Playing scenarios on a target, from the options of a run to the outcome of each scenario."""
