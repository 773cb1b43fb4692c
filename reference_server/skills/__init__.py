"""Skills: finding them, showing them, switching them, and giving their text to the model.

Nothing here is imported before a client asks for skills, or an input names one.

| module | does |
|---|---|
| `skill` | one skill, and the error of an unusable one |
| `files` | reads a file of a skill: bounded, and only if it is one |
| `toml` | reads TOML and says what is wrong with it |
| `front_matter`, `document` | SKILL.md: its name, its description, its text |
| `companions` | what lies beside SKILL.md: icons, config.toml |
| `scan` | all skills of one folder of skills |
| `library` | the folders of each scope, the cache, what is listed |
| `switches` | which skills are disabled, in config.toml of the home |
| `naming`, `invoking` | `$name` in an input, and the text for the model |
| `catalogue` | remote skills, from a local folder |
"""
