"""`python -m tools.bench`: the budgets of the design beside figures measured now.

Here lives the measuring: the model side (`model`, a process of its own), the client (`client`),
what is measured of a server (`measures`), of the suite (`suite`) and of the rules (`rules`), and
the table (`table`, `budgets`, `stats`). Not here: any assertion. A figure over its budget is
printed as such and fails nothing; only a measurement that breaks does.
"""
