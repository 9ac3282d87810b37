"""From a drawing to outlines: positions, scenes, and the formats in which they are written."""
