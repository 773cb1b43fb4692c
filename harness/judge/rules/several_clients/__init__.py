"""Rules on several clients at once: what each of them is told, and whose answer counts."""
