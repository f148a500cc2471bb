"""Which columns would a model overlook? Compare how much each of them pulls, before and after scaling.

178 wines with 13 measurements (scikit-learn). A column's share of the gradient says how much of each training step
goes to it. Equal shares would be a fourteenth each: the dotted line.
"""

import sys

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_wine

import evenly

table = load_wine(as_frame=True).frame
found = evenly.diagnose(table, train=False)
print(found.verdict)

ax = Figure(figsize=(7, 4.2), layout="constrained").subplots()
rows = np.arange(len(found.columns))
for shift, (name, label) in zip(
    (-0.27, 0.0, 0.27), [("none", "as it is"), ("std", "std"), ("lip", "lip")], strict=True
):
    ax.barh(rows + shift, [one.gradient_share[name] for one in found.columns], 0.25, label=label)
ax.axvline(1.0 / len(rows), color="0.3", linestyle=":")
ax.set_yticks(rows, [one.column for one in found.columns])
ax.invert_yaxis()
ax.set_xlabel("share of the gradient")
ax.legend(frameon=False)
ax.figure.savefig(sys.argv[1] if sys.argv[1:] else "diagnosis.png")
