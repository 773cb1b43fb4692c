"""A scenario made of a trace: recorded between others, or left by a run.

Here: reading what happened (story, exec_story), the model's side (model_side, told_items,
said_items), the client's (client_side, connections, holding, heard, references; exec_side), what a
run was given (given), the file (making, titles). Not here: playing it, judging it.
"""
