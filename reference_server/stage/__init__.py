"""`agent app-server --scenario … --listen …`: a scenario for each connection, for tests of clients.

Here lives how a connection gets a server of its own with a scripted model, and when the whole ends.
What is laid out, put in between and judged lives in `harness.stage`, which nothing else here may
import.
"""
