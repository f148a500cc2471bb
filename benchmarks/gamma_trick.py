"""The paper's evidence for the Gamma trick, and what it measures.

Its appendix draws from Bernoulli(i/50), Poisson(i) and Poisson(i/50) for i = 0 .. 50, adds noise from
Beta(1.1, 30), fits a gamma, matches means and averages the absolute error of the parameter. It reports 0.0081 for
the Bernoulli and 0.0712 for the Poisson, and does not say how many draws were taken.

A gamma's maximum-likelihood mean is the sample mean, whatever the sample: the experiment measures the sampling
noise of a mean. Its rival here is therefore the mean of the plain draws, without noise and without a gamma.

    python benchmarks/gamma_trick.py --seed 0 [--out FILE]

FILE gets a line for each number of draws.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evenly.likelihoods import GAMMA, get_likelihood
from evenly.scaling import NOISE_A, NOISE_B, OFFSET, undo_binary, undo_moments

Floats = npt.NDArray[np.float64]

PAPER = {"Bernoulli": 0.0081, "Poisson": 0.0712}
NOISE_VARIANCE = NOISE_A * NOISE_B / ((NOISE_A + NOISE_B) ** 2 * (NOISE_A + NOISE_B + 1.0))
SIZES = (100, 1_000, 10_000, 100_000)


class Group(NamedTuple):
    """The distributions that one of the paper's two numbers averages over."""

    parameters: Floats
    variances: Floats
    draw: Callable[[np.random.Generator, float, int], npt.NDArray[np.int64]]
    undo: Callable[[Any], Any]


def undo_rate(natural: Any) -> Any:
    """Return the Poisson rate from the gamma's natural parameters."""
    return get_likelihood("poisson").from_moments(*undo_moments(natural))[..., 0]


def make_groups() -> dict[str, Group]:
    """Return the paper's distributions.

    Those of i = 0 draw nothing but 0, and Bernoulli(1) nothing but 1: there the plain mean has no error, and the
    matched one half of the noise's, for the parameter is cut where it would leave its range.
    """
    steps = np.arange(51.0)
    shares, rates = steps / 50.0, np.concatenate([steps, steps / 50.0])
    return {
        "Bernoulli": Group(shares, shares * (1.0 - shares), lambda rng, p, n: rng.binomial(1, p, n), undo_binary),
        "Poisson": Group(rates, rates, lambda rng, rate, n: rng.poisson(rate, n), undo_rate),
    }


def expected_error(group: Group, n: int) -> tuple[float, float]:
    """Return mean and standard deviation of the averaged error, if it is the sampling noise of means of n draws.

    A mean is nearly normal, and |normal| has mean sqrt(2/pi) std and variance (1 - 2/pi) std^2.
    """
    stds = np.sqrt((group.variances + NOISE_VARIANCE) / n)
    spread = math.sqrt((1.0 - 2.0 / math.pi) * float((stds**2).sum())) / len(stds)
    return math.sqrt(2.0 / math.pi) * float(stds.mean()), spread


def measure_errors(group: Group, n: int, rng: np.random.Generator) -> tuple[float, float]:
    """Return the average absolute errors of the matched gamma and of the plain mean, from n draws each."""
    errors = []
    for parameter in group.parameters.tolist():
        draws = group.draw(rng, parameter, n)
        noisy = draws + OFFSET + rng.beta(NOISE_A, NOISE_B, n)
        natural = GAMMA.fit(GAMMA.statistics(noisy).mean(axis=0))
        # The answer first: were the fitted mean another number, this would measure something else.
        assert abs(float(GAMMA.mean(natural)) / float(noisy.mean()) - 1.0) < 1e-9
        matched = abs(float(group.undo(natural)) - parameter)
        errors.append((matched, abs(float(draws.mean()) - parameter)))
    mean = np.mean(errors, axis=0)
    return float(mean[0]), float(mean[1])


def main() -> None:
    parser = argparse.ArgumentParser(description="Repeat the paper's simulation of the Gamma trick.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--repeats", type=int, default=5, help="times that each error is measured")
    parser.add_argument("--out", type=Path, help="file of JSON lines that gets the results")
    given = parser.parse_args()
    found: list[dict[str, Any]] = []
    start = time.perf_counter()
    print("Average absolute error of the parameter: mean and standard deviation over the repeats; the ratio of")
    print("the matched gamma's to the plain mean's; what sampling noise alone would give, with its standard")
    print("deviation in one run; and the paper's number, in those deviations from it.\n")
    print(f"{'':9} {'draws':>6}  {'matched gamma':17}  {'plain mean':17}  ratio  {'sampling noise':17}  paper")
    for name, group in make_groups().items():
        for n in SIZES:
            seeds = np.random.SeedSequence([given.seed, n]).spawn(given.repeats)
            errors = np.array([measure_errors(group, n, np.random.default_rng(seed)) for seed in seeds])
            (matched, plain), (off, off_plain) = errors.mean(axis=0), errors.std(axis=0)
            expected, deviation = expected_error(group, n)
            away = (PAPER[name] - expected) / deviation
            found.append(
                {"group": name, "draws": n, "repeats": given.repeats, "fits": errors.shape[0] * len(group.parameters)}
            )
            found[-1] |= {"matched": matched, "matched_std": off, "plain": plain, "plain_std": off_plain}
            found[-1] |= {"expected": expected, "deviation": deviation, "paper": PAPER[name], "away": away}
            print(
                f"{name:9} {n:6}  {matched:.5f} ({off:.5f})  {plain:.5f} ({off_plain:.5f})  "
                f"{matched / plain:5.3f}  {expected:.5f} ({deviation:.5f})  {PAPER[name]:.4f} ({away:+.1f})"
            )
    print(f"\nThe fitted gamma's mean was the sample mean, to 1e-9, in every fit. {time.perf_counter() - start:.0f} s")
    if given.out:
        given.out.write_text("".join(json.dumps(one) + "\n" for one in found), encoding="utf-8")


if __name__ == "__main__":
    main()
