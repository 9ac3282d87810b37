"""Analysis of procedures, for rewrites: their loops, arrays and guards, and the dependences between iterations."""
