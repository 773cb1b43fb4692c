"""Transports: each gives and takes whole messages as bytes.

Here live framing and byte streams. What a message means is not known here.
"""
