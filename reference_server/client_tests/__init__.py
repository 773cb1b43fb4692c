"""`agent app-server --scenario … --listen …`: a scenario for each connection, for tests of clients.

Set-up, faults and judging come from `harness.play.client_tests`, which only this package and
`cli.staging` may import.
"""
