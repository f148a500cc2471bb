"""The paper's experiments end to end: data sets, the grid of runs, records, tables and figures.

Folders of data come in; records, tables and pictures go out. The names stand in `__init__.pyi`; a module is imported
when one of its names is asked for, so that tables and figures need no JAX.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
