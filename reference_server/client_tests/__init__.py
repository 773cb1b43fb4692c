"""`agent app-server --scenario … --listen …`: a scenario for each connection, for tests of clients.

What is laid out, put in between and judged lives in `harness.play.client_tests`, which nothing else
here may import.
"""
