"""Ten broken servers, for proving that fuzzing finds what no scenario does, and ten further ones.

Each is the reference server with one bug, which needs a sequence of a few actions or a coincidence
of two. It strikes whenever that sequence comes, and never by chance; a client could well make it.
The bundled scenarios are all green on each of them.

- `turns.py`, `threads.py`, `further.py`: the bugs, a function each. Its docstring says what is
  wrong, which sequence it needs, and which sentence of the specification it breaks.
- `sequences/NAME.scenario.yaml`: the shortest such sequence that we know. It is red on this server,
  by the rule that the table names, and green on the reference server.
- `registry.py`: the table. `__main__.py`: the server.

Start one: `python tests/fuzz/broken_servers NAME app-server`, with `--listen ADDRESS` for several
clients. It can be started from any folder.
"""
