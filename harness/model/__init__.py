"""The scripted model: it plays the part of the model service to the server under test."""
