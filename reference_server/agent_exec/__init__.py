"""`agent exec`: one turn per process.

`options` parses the arguments, `prompt` reads the prompt, `run_config` makes the configuration,
`run` runs the turn on the same engine as the app server, `follower` receives its notifications,
`events` and `items` convert them to the SDK's events, `output` and `human` write these. Source:
mcp-cli-and-sdk "Events", "SDK thread items"; docs/exec.md.
"""
