"""Skills: search, listing, enabling and disabling, and their texts for the model.

Nothing here is imported before a client asks for skills, or an input names one.

| module | does |
|---|---|
| `skill` | a skill, and the error of an unusable one |
| `files` | reads a file of a skill, if it is a regular one and not too large |
| `toml` | parses TOML, with errors as of other problems of skills |
| `front_matter`, `document` | SKILL.md: name, description, text |
| `companions` | files beside SKILL.md: icons, config.toml |
| `scan` | all skills of one folder of skills |
| `library` | the folders of each scope, the cache, listings |
| `switches` | disabled skills, in config.toml of the home |
| `naming`, `invoking` | `$name` in an input, and the text for the model |
| `catalogue` | remote skills, from a local folder |
"""
