"""Whole sessions, generated: threads, turns, approvals, faults of the model, in any order.

A case is a scenario document: the plain value of a `*.scenario.yaml` file. So playing it again,
making it smaller and keeping it as a file are the ordinary play of a scenario. What lives where:
`turns` (what the model says in a generated turn), `plan` (what is known of the session while its
steps are drawn), `session` (which step comes next), `actions` (the steps), `chains` (several
in a row), `play` (one document played and judged), `habits` and `looks` (what no rule judges),
`shrinking`, `search` (many documents from one seed).
"""
