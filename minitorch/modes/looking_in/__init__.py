"""Looking into traced programs: costs, stages, explanations, stepping through them."""
