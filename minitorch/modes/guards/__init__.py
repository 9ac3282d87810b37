"""Guards: the conditions under which a trace may be used again. If one fails, the function is traced again.

The *signature* has the structure, shapes, types and plain values of the arguments. Guarded besides are variables that
the function reads from outside, the `training` flags of modules, gradients and hooks that it looked at, and the strides
of an argument where they decided whether a reshape is a view.
"""
