"""Rules on several clients at once: the messages that each gets, and whose answer counts."""
