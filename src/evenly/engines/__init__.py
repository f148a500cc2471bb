"""Lazy frames of other engines: fitted by queries, scaled by expressions, from files to files."""
