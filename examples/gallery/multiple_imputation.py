"""Run a regression with statsmodels on ten imputed tables, and pool the results by Rubin's rules.

The largest heart rate is regressed on three columns, a third of whose cells are missing. Complete rows alone would
lose more than half of the patients, and have wider intervals.
"""

import sys

import numpy as np
import statsmodels.formula.api as smf
from matplotlib.figure import Figure

import evenly

FORMULA = "max_hr ~ age + vessels + exercise_angina"
table = evenly.load_heart()
for seed, name in enumerate(("age", "vessels", "exercise_angina")):
    table[name] = table[name].mask(np.random.default_rng(seed).random(len(table)) < 0.3)

imputer = evenly.Imputer(effort="quick", random_state=0).fit(table)
pooled = evenly.pool([smf.ols(FORMULA, one).fit() for one in imputer.sample(table, n=10)])
complete = smf.ols(FORMULA, table.dropna()).fit()
print(pooled.summary())

terms = [term for term in pooled.estimate.index if term != "Intercept"]
ax = Figure(figsize=(7, 2.6), layout="constrained").subplots()
for shift, color, name, mean, low, high in (
    (-0.1, "C0", "pooled", pooled.estimate, pooled.low, pooled.high),
    (0.1, "C1", f"{int(complete.nobs)} complete rows", complete.params, *complete.conf_int().to_numpy().T),
):
    low, high = (dict(zip(pooled.estimate.index, one, strict=True)) for one in (low, high))
    ax.plot([mean[k] for k in terms], np.arange(len(terms)) + shift, "o", color=color, label=name)
    ax.hlines(np.arange(len(terms)) + shift, [low[k] for k in terms], [high[k] for k in terms], color=color)
ax.set(yticks=range(len(terms)), yticklabels=terms, xlabel="beats per minute")
ax.legend(frameon=False)
ax.figure.savefig(sys.argv[1] if sys.argv[1:] else "pooled.png")
