"""Rules on SDKs: what their options make of the agent's start, and what their calls give."""
