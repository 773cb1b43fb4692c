"""Targets: profiles, and the processes of servers from their start to their verified end."""
