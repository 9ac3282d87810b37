"""Random programs in Q/DQ form, and the two laws that they hold in every mode.

    generate ──► Program ──► eager, interpreted, compiled, frozen, in shadow mode ──► laws ──► Finding
                 (graphs)                     (modes)

Convolutions, linear layers, residual sums, concatenations, pools, paddings and movements, of numbers that are rounded
to uint8 or int8 with scales of the whole tensor or of its channels, held by the program or handed to it, with one pair
of parameters or another one for each reader. `python -m fuzz.quantized` runs them for every target that the machine
can execute; a short run is a part of the tests.
"""
