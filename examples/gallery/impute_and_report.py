"""Fill the missing cells of a table, see how far you can trust the result, and write a report for the browser.

A tenth of the cells of the embedded table of heart patients is removed. The picture compares the observed classes of
a column with the imputed ones, drawn at random.
"""

import sys

import numpy as np

import evenly

table = evenly.load_heart()
table = table.mask(np.random.default_rng(0).random(table.shape) < 0.1)

imputer = evenly.Imputer(effort="quick", random_state=0)
trial = evenly.try_imputer(imputer, table)  # hides some observed cells, imputes them and compares
print(trial)

full = imputer.fit_transform(table)
evenly.write_report("report.html", table, filled=full, imputer=imputer, trial=trial)
print(f"{table.isna().sum().sum()} missing cells before, {full.isna().sum().sum()} after")

imputer.plot_imputed("chest_pain").figure.savefig(sys.argv[1] if sys.argv[1:] else "imputed.png")
