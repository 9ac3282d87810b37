"""The compiler: from a graph to machine code, by fusion, scheduling and code generation."""
