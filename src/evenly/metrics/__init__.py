"""Errors and log-likelihoods by column, on hidden cells."""
