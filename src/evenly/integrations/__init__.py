"""Probabilistic programs: a hand-written model and a fitted scaler come in, the same model in scaled units goes out.

One module a library, an extra each: `from evenly.integrations.numpyro import standardize`. Nothing is imported before
it is asked for. What libraries share is the scaler's: which column a site is, and how its parameters are unscaled.
"""
