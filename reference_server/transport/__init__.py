"""Transports: each gives and takes whole messages as bytes.

They do not interpret messages.
"""
