"""Comparing a class's work: `minitorch similar`.

The data that flows: notebooks become parties (`parties`), a party's text becomes tokens (`tokens`), these become
fingerprints (`fingerprints`), fingerprints that two parties share become pairs with their common lines (`pairs`), and
pairs become a table (`table`) and a page (`page`).
"""
