"""The paper's experiments end to end: data sets, the grid of runs, records, tables and figures.

Folders of data come in; records, tables and pictures go out.
"""
