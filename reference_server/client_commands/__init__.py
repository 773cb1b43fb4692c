"""Commands that a client runs itself, outside any thread: `command/exec` of a release.

The text has no such method; a server with a dialect has it (`[[method]]` rows with `own`).
"""
