"""Dataframes in and out: columns, kinds, schema, cells as numbers."""
