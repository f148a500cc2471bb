"""Trials on hidden cells, comparison, choice of likelihoods, diagnosis."""
