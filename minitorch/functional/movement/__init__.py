"""Functions that arrange, index, gather and select elements, without computing new ones."""
