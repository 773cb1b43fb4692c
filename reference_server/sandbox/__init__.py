"""Commands: their processes, output and sandbox, and analysis of command lines.

This package does not know threads, turns, items or approvals; the engine does.

| module | does |
|---|---|
| `process` | runs one command to its end, streams its output, ends all its processes |
| `warden`, `launcher` | the helper program that holds a command's process tree, and the way to it |
| `output` | decodes and limits what a command prints |
| `environment` | which environment variables a command gets |
| `sandbox`, `mounts`, `probe` | a policy as a bubblewrap command line; whether it works here |
| `shell_syntax` | a command line as simple commands |
| `actions`, `trust`, `rules` | what a command does, whether it only reads, lasting rules |
| `permissions` | what a command could read if the server runs as root |
"""
