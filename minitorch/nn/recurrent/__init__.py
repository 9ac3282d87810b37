"""Recurrent layers: the steps, the loop over time, cells, and layers of whole sequences."""
