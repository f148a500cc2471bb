"""Define a likelihood that Evenly does not have by five formulas, and scale a column by it.

It is the Pareto distribution, of incomes above a threshold. The formulas are checked numerically: the density must
integrate to 1 and survive scaling. After that, it can do what a built-in likelihood can.
"""

import sys

import numpy as np
import pandas as pd

import evenly

pareto = evenly.define_likelihood(
    "pareto",
    support=evenly.Support(1.0),
    statistics=lambda x, xp: (xp.log(x),),
    log_base=lambda x, xp: -xp.log(x),
    log_partition=lambda natural, xp: -xp.log(-natural[..., 0]),
    factors=lambda scale, xp: (scale,),
    scale_data=lambda x, scale, xp: x**scale,
)
rng = np.random.default_rng(0)
table = pd.DataFrame({"income": 1.0 + rng.pareto(2.5, 500), "age": rng.normal(45.0, 12.0, 500)})
scaler = evenly.LipschitzScaler(likelihoods={"income": pareto}).fit(table)
print(scaler.summary_[["column", "likelihood", "scale", "smoothness_before", "smoothness_after"]].round(3))
back = scaler.inverse_transform(scaler.transform(table))
print("and back:", np.allclose(back, table))

evenly.plot_smoothness(scaler).figure.savefig(sys.argv[1] if sys.argv[1:] else "smoothness.png")
