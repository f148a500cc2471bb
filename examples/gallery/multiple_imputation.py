"""Run a regression of statsmodels on ten imputed tables, and pool it by Rubin's rules.

Years of age per beat of the largest heart rate, with a third of some cells missing: complete rows alone lose more
than half of the patients, and their intervals are wider.
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
for shift, name, mean, low, high in (
    (-0.1, "pooled", pooled.estimate, pooled.low, pooled.high),
    (0.1, f"{int(complete.nobs)} complete rows", complete.params, *complete.conf_int().to_numpy().T),
):
    low, high = (dict(zip(pooled.estimate.index, one, strict=True)) for one in (low, high))
    ax.plot([mean[k] for k in terms], np.arange(len(terms)) + shift, "o", label=name)
    ax.hlines(np.arange(len(terms)) + shift, [low[k] for k in terms], [high[k] for k in terms])
ax.set(yticks=range(len(terms)), yticklabels=terms, xlabel="beats per minute")
ax.legend(frameon=False)
ax.figure.savefig(sys.argv[1] if sys.argv[1:] else "pooled.png")
