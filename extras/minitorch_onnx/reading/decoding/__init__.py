"""From the bytes of a file to messages and arrays, each checked against what is there."""
