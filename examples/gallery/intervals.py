"""Say how sure imputed numbers are: 90 % intervals, and how often they contain the truth.

The table has 442 patients with diabetes (scikit-learn). A fifth of their blood pressures are removed, imputed and
compared with the truth.
"""

import sys

import numpy as np
from sklearn.datasets import load_diabetes

import evenly

complete = load_diabetes(as_frame=True, scaled=False).frame
hidden = np.random.default_rng(0).random(len(complete)) < 0.2
table = complete.assign(bp=complete["bp"].mask(hidden))

imputer = evenly.Imputer(effort="quick", random_state=0).fit(table)
low, high = imputer.interval(table, 0.9)
held = complete["bp"].between(low["bp"], high["bp"])[hidden]
print(f"{held.mean():.0%} of {hidden.sum()} hidden values lie in their 90 % intervals")

imputer.plot_intervals("bp").figure.savefig(sys.argv[1] if sys.argv[1:] else "intervals.png")
