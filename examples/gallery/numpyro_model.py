"""Run a NumPyro model of two outcomes in scaled units, and compare its draws with blood pressures in mmHg."""

import sys

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
from matplotlib.figure import Figure
from numpyro.infer import MCMC, NUTS, Predictive

import evenly
from evenly.integrations.numpyro import standardize


def model(age, pressure=None, cholesterol=None):
    """Both outcomes depend on age; parameters are in scaled units."""
    level, slope = (numpyro.sample(name, dist.Normal(0, 5).expand([2])) for name in ("level", "slope"))
    spread = numpyro.sample("spread", dist.LogNormal(0, 1).expand([2]))
    with numpyro.plate("rows", len(age)):
        numpyro.sample("pressure", dist.Normal(level[0] + slope[0] * age, spread[0]), obs=pressure)
        numpyro.sample("cholesterol", dist.LogNormal(level[1] + slope[1] * age, spread[1]), obs=cholesterol)


table = evenly.load_heart()
age, *outcomes = (np.asarray(table[name], float) for name in ("age", "rest_bp", "cholesterol"))
age = (age - age.mean()) / age.std()
scaler = evenly.LipschitzScaler(likelihoods={"rest_bp": "normal", "cholesterol": "log-normal"}).fit(table)
program = standardize(model, scaler, {"pressure": "rest_bp", "cholesterol": "cholesterol"})
mcmc = MCMC(NUTS(program), num_warmup=300, num_samples=300, progress_bar=False)
mcmc.run(jax.random.key(0), age, *outcomes)
drawn = Predictive(program, mcmc.get_samples())(jax.random.key(1), age)["pressure"]
ax = Figure(figsize=(6, 3), layout="constrained").subplots()
ax.hist(outcomes[0], range(80, 220, 10), density=True, color="0.7", label="observed")
ax.hist(np.asarray(drawn).ravel(), range(80, 220, 10), density=True, histtype="step", linewidth=2, label="predicted")
ax.set(xlabel="blood pressure, mmHg", ylabel="density")
ax.legend(frameon=False)
print(f"predicted mean {drawn.mean():.0f} mmHg, observed {outcomes[0].mean():.0f}")
ax.figure.savefig(sys.argv[1] if sys.argv[1:] else "predicted.png")
