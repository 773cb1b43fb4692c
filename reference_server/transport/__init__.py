"""Transports: each receives and sends whole messages as bytes, without interpreting them."""
