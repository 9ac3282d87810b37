"""Guards: the signature of a call and the surroundings of a function, which a trace depends on."""
