"""The client of the model: the OpenAI Responses API over server-sent events."""
