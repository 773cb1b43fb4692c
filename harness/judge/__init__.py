"""The judge: rules (`rules`) run over traces, and the record of free choices (`ledger`)."""
