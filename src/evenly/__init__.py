"""Evenly: impute mixed tables, and scale them for probabilistic models.

The public names stand in `__init__.pyi`, each with the folder that it comes from. A folder is imported when one of its
names is asked for: importing evenly loads neither JAX nor matplotlib nor scikit-learn.
"""

import lazy_loader

from evenly._version import __version__

__getattr__, __dir__, _names = lazy_loader.attach_stub(__name__, __file__)
__all__ = [*_names, "__version__"]
