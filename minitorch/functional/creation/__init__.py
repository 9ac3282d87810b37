"""Functions that make tensors: of sizes, of data, of random numbers, and copies."""
