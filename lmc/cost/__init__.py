"""The costs of programs: prices of models, ranges of figures, budgets."""
