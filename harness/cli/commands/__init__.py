"""The commands of `harness`, a module for each."""
