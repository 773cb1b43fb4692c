"""Twenty broken servers whose bugs fuzzing must find, since no bundled scenario does.

Each is the reference server with one bug, which needs a realistic sequence of a few actions, or two
at the same time. It always strikes then, and never otherwise. All bundled scenarios pass on each
server.

- `turns.py`, `threads.py`, `further.py`: the bugs, a function each. Its docstring has the bug, the
  sequence it needs, and the sentence of the specification that it breaks.
- `sequences/NAME.scenario.yaml`: the shortest known sequence. It fails on this server, by the rule
  that the table names, and passes on the reference server.
- `registry.py`: the table. `__main__.py`: the server.

Start one: `python tests/fuzz/broken_servers NAME app-server`, with `--listen ADDRESS` for several
clients. It can be started from any folder.
"""
