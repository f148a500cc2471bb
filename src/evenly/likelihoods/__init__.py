"""Exponential families, written once for NumPy, JAX and PyTorch."""
