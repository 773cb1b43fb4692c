"""The scripted model: a fake model service for the server under test."""
