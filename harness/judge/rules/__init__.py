"""The rules, a package for each resource; found by `discovery`, never listed."""
