"""Hostile ONNX models: files are mutated, read, and run, and each has to end well or be refused by name.

    models ──► changes (of messages) or encoding (of bytes) ──► campaign: load_onnx, then a call ──► how it ends

A few dozen good models use most of the reading. `changes` makes lies of their messages (shapes, types, names, paths,
numbers that ask for gigabytes), `encoding` breaks protobuf's encoding, and `campaign` holds the law. `python -m
fuzz.onnx` is the long run; a short one is a part of the tests.
"""
