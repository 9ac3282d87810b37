"""From a graph to machine code: fusion, loops, LLVM, memory."""
