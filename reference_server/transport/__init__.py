"""Transports: each gives and takes whole messages as bytes.

What a message means is not known here.
"""
