"""Procedures of the tiled loop IR as LLVM IR.

The emitter decides nothing about order: loops, vectors and unrolling are written in the procedure. Its parts, each of
which uses only those before it:

- `scopes`: the regions of code that are open, common subexpressions, and loop-invariant code motion;
- `registers`: local arrays in vector registers;
- `indices`: indices as numbers, or as one number per lane;
- `runs`: quotients and remainders that lanes count through, as runs of neighbours;
- `conditions`: conditions as bits, and as masks of lanes;
- `memory`: addresses, loads and stores of elements;
- `expressions`: the values of expressions;
- `stores`: the statements that write;
- `emitter`: loops and guards, and with them the whole procedure.
"""
