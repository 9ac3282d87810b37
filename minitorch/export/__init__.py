"""File formats that other programs read and write, too. No format here can run code: no pickle, anywhere."""
