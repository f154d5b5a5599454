"""Text → records, for every era of oneDNN and oneMKL."""
