"""Recording a session between a client and a server that are not ours.

Here: the masks, the file, what stands in a relay and writes down what passes, the model's side. Not
here: starting servers and taking clients (commands), the format of a trace (harness.trace).
"""
