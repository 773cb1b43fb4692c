"""A planted bug for each bundled scenario, on which the scenario must fail.

A scenario is worth something if it fails on a server that does what its title forbids. So each of
them has a bug here: the smallest mistake of a server that its title speaks of. The reference server
is started with that one bug, the scenario is played, and the finding that the table names must be
reported. `test_bugs.py` plays them all, and fails for a scenario that has no bug.

How to add a bug
----------------

Write a function in `tables/<area>.py` and say what turns red::

    @bug(reds={"commands/exit-code": "scenario.expectation: exitCode"})
    def every_command_ends_with_zero() -> None:
        \"\"\"The exit code of a failed command is reported as 0.\"\"\"
        swap("reference_server.sandbox.process:Finished.exit_code", lambda original: ...)

- The function's name is the bug's, with dashes for underlines; its docstring says what the server
  does wrong, and can be read beside the title. It runs in the server's process, before the server.
- `reds` has, for each scenario that the bug turns red, a finding: the id of a MUST or SHOULD rule,
  or a finding of the scenario itself and a piece of its message. A finding that a crashed or idle
  server would cause too proves nothing: name the one about the bug.
- Use one bug for several scenarios only if their titles are about the same thing.
- `swap` (planting.py) replaces the named code and raises if it does not exist, `sent` and
  `received` edit messages. So a bug that finds nothing to change fails its test.
- Prefer a bug that gives a wrong result to one that hangs, which costs a whole timeout.

- Some bugs about stored threads and several clients are planted in another server,
  `fixtures/servers/keeper.py`: `bug(…, server="keeper")`, and
  `swap("keeper:Keeper.thread_fork", …)`.

Try one by hand: `python tests/conformance/bugs/serve.py NAME app-server`.

If no bug can turn a scenario red, mend the scenario, not the table.
"""
