"""What this host is and what we may use of it; standard library only."""
