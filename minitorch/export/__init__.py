"""Files that others read and write, too. Nothing here can run code from a file: no pickle, anywhere."""
