"""The two tables and their file."""
