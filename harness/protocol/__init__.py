"""The protocol, written twice and apart: `wire` to compose messages, `spec` to judge them."""
