"""Frames and marks of a conversation, in order: recording, storing and looking into them."""
