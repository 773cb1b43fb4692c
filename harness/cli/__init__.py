"""Entry points: the `harness` command (`main`), its commands, and pytest (`plugin`, `suite`)."""
