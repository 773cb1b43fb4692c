"""`python -m tools.bench`: performance budgets beside figures measured now.

A figure over its budget is printed as `over`, but only a failed measurement fails the run.
"""
