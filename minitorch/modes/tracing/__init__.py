"""From a function that is called to a compiled program: recording, effects, gradients."""
