"""Releases of servers, judged one by one: what `harness matrix` and `harness bisect` share."""
