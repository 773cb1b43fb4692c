"""Rules on skills: listing, configuring and invoking them."""
