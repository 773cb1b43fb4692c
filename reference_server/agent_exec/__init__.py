"""One turn per process: what `agent exec` is beside the command line.

`options` reads the words, `prompt` finds the prompt, `run_config` makes the configuration of the
run, `run` plays the turn on the same engine as the app server, `follower` takes its notifications,
`events` and `items` put them in the words of the SDK, `output` and `human` write them. Source:
mcp-cli-and-sdk "Events", "SDK thread items"; docs/exec.md.
"""
