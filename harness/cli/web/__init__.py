"""Pages on loopback for one user: who may ask for them, how they are served."""
