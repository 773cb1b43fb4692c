"""The bugs, a module for each folder of scenarios. How to add one: the package above."""
