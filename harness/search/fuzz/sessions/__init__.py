"""Generated sessions: threads, turns, approvals, faults of the model, in any order.

A case is a scenario document: the plain value of a `*.scenario.yaml` file, so that replaying,
shrinking and storing it need nothing else. Modules: `turns` (the model's side of a turn), `plan`
(the state of a session while its steps are drawn), `session` (the choice of the next step),
`actions` (the steps), `chains` (several in a row), `play` (one document played and judged),
`habits` and `checks` (checks beyond the rules), `shrinking`, `search` (documents from one seed).
"""
