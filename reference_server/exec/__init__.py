"""Commands: their processes, output and sandbox, and what can be told of them beforehand.

Nothing here knows of threads, turns, items or approvals; the engine puts the parts together.

| module | does |
|---|---|
| `process` | runs one command to its end, streams its output, leaves nothing behind |
| `warden`, `launcher` | the helper program that holds a command's process tree, and the way to it |
| `output` | decodes and bounds what a command prints |
| `environment` | which variables a command gets |
| `sandbox`, `mounts`, `probe` | a policy as a bubblewrap command line; whether it works here |
| `words` | a command line as simple commands |
| `actions`, `trust`, `rules` | what a command does, whether it only reads, earlier consent |
"""
