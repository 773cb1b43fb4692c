"""Rules on SDKs: the agent's start that their options give, and the results of their calls."""
