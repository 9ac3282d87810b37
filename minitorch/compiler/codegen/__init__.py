"""Code generation: loop nests as LLVM IR with vectors written out, and LLVM IR as machine code."""
