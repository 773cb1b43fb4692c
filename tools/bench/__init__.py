"""`python -m tools.bench`: the budgets of the design beside figures measured now.

A figure over its budget is printed as such and fails nothing; only a measurement that breaks does.
"""
