"""The client side: starting servers (`target`), reaching them (`transport`), speaking (`peer`)."""
