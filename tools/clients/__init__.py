"""Public clients of the real server, each used by a program on the release and on our double.

`python -m tools.clients` (`make clients`) installs them by exact version into .real/wild, runs the
programs of fixtures/clients offline, judges the clients' duties, and writes docs/clients.md.
"""
