"""Results to terminal, JSON, HTML and other people's formats."""
