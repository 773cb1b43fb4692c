"""Client of the model: the OpenAI Responses API over server-sent events."""
