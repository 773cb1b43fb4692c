"""The bugs, in a module for each folder of scenarios; the parent package says how to add one."""
