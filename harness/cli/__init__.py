"""The ways in: the `harness` command (`main`), its commands, and pytest (`plugin`, `suite`)."""
