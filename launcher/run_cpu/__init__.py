"""The launcher: the right cores and memory for one or many instances of a program."""
