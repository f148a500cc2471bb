"""Weights of conflicting gradients: against their definitions, and against TorchJD where it is installed."""

import numpy as np
import pytest
from scipy.optimize import minimize

jax = pytest.importorskip("jax")

import jax.numpy as jnp

from evenly.models import aggregation


def gradients(seed, n, d):
    """Gradients of very different lengths, some of which conflict."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) * np.exp(rng.normal(size=(n, 1))) + rng.normal() * rng.normal(size=d)


def weights_of(name, rows, *rest):
    """Return a solver's weights in double precision, and in the middle of columns that take no part."""
    with jax.enable_x64(True):
        n = len(rows)
        active = np.r_[False, np.ones(n, bool), False]
        gram = np.zeros((n + 2, n + 2))
        gram[1:-1, 1:-1] = rows @ rows.T
        own = [] if name in ("imtl_g", "pcgrad") else [active]
        found = np.asarray(getattr(aggregation, name)(jnp.asarray(gram), *own, *map(jnp.asarray, rest)))
    assert np.abs(found[[0, -1]]).max() < 1e-6 or name == "pcgrad"
    return found[1:-1]


SHAPES = [(0, 2, 30), (1, 5, 8), (2, 12, 40), (3, 9, 4), (4, 1, 3)]


@pytest.mark.parametrize(("seed", "n", "d"), SHAPES)
def test_mgda_is_nearly_the_shortest_convex_combination(seed, n, d):
    rows = gradients(seed, n, d)
    found = weights_of("mgda", rows)
    assert found.min() >= 0.0
    assert np.isclose(found.sum(), 1.0)
    shortest = minimize(
        lambda w: w @ rows @ rows.T @ w,
        np.full(n, 1.0 / n),
        jac=lambda w: 2.0 * rows @ rows.T @ w,
        bounds=[(0.0, 1.0)] * n,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1.0, "jac": lambda w: np.ones(n)},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    # Frank-Wolfe steps end when they move by less than a thousandth.
    assert found @ rows @ rows.T @ found <= shortest.fun + 2e-3 * (rows**2).sum(1).max()


@pytest.mark.parametrize(("seed", "n", "d"), [one for one in SHAPES if one[1] <= one[2]])
def test_imtl_gives_all_gradients_the_same_projection(seed, n, d):
    rows = gradients(seed, n, d)
    found = weights_of("imtl_g", rows)
    projections = (rows / np.linalg.norm(rows, axis=1, keepdims=True)) @ (found @ rows)
    np.testing.assert_allclose(projections, projections[0], rtol=1e-6)
    assert np.isclose(found.sum(), 1.0)


@pytest.mark.parametrize(("seed", "n", "d"), [one for one in SHAPES if one[1] <= one[2]])
def test_nash_weights_are_the_inverse_of_what_they_bring(seed, n, d):
    rows = gradients(seed, n, d)
    found = weights_of("nash", rows)
    np.testing.assert_allclose(rows @ (found @ rows), 1.0 / found, rtol=1e-6)


@pytest.mark.parametrize("c", [0.2, 0.5, 0.9])
@pytest.mark.parametrize(("seed", "n", "d"), SHAPES[:4])
def test_cagrad_helps_the_worst_column_most(seed, n, d, c):
    rows = gradients(seed, n, d)
    mean = rows.mean(0)
    found = weights_of("cagrad", rows, c) @ rows
    radius = c * np.linalg.norm(mean)
    assert np.linalg.norm(found - mean) <= radius * (1.0 + 1e-5)
    worst = (rows @ found).min()
    rng = np.random.default_rng(seed)
    for _ in range(300):  # no direction in the ball helps the worst column more
        step = rng.normal(size=d) * rng.choice([0.01, 0.1, 1.0]) + (found - mean)
        other = mean + radius * step / max(np.linalg.norm(step), 1e-12)
        assert (rows @ other).min() <= worst + 1e-5 * np.abs(rows @ found).max()


@pytest.mark.parametrize("seed", range(6))
def test_cagrad_is_the_solution_of_a_precise_solver(seed):
    """Also certified: the direction's worst column and the dual objective, bounds of each other, meet."""
    n, c = 2 + seed, 0.5
    rows = gradients(seed, n, n + 20)
    unit = np.sqrt((rows**2).sum())
    gram, mean = rows @ rows.T / unit**2, rows.mean(0)
    even, radius = np.full(n, 1.0 / n), c * np.linalg.norm(mean) / unit
    best = minimize(
        lambda w: w @ gram @ even + radius * np.sqrt(w @ gram @ w),
        even,
        jac=lambda w: gram @ even + radius * gram @ w / np.sqrt(w @ gram @ w),
        bounds=[(0.0, 1.0)] * n,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1.0, "jac": lambda w: np.ones(n)},
        method="SLSQP",
        options={"ftol": 1e-16, "maxiter": 2000},
    )
    precise = mean + c * np.linalg.norm(mean) * (best.x @ rows) / np.linalg.norm(best.x @ rows)
    found = weights_of("cagrad", rows, c) @ rows
    np.testing.assert_allclose(found, precise, atol=1e-7 * np.abs(precise).max(), rtol=0.0)
    assert (rows @ found).min() == pytest.approx(best.fun * unit**2, rel=1e-8)


def test_pcgrad_removes_conflicts_in_the_given_order():
    rows = np.array([[1.0, 0.0], [-1.0, 1.0]])
    # The first loses its part along the second: (1, 0) + (-1, 1) / 2; the second its part along the first: (0, 1).
    orders = np.tile(np.arange(4), (4, 1))
    np.testing.assert_allclose(weights_of("pcgrad", rows, orders) @ rows, [0.5, 1.5], rtol=1e-12)


@pytest.mark.more
@pytest.mark.filterwarnings("ignore:You are solving a parameterized problem")  # cvxpy, of TorchJD's own problem
@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("name", ["MGDA", "IMTLG", "PCGrad", "CAGrad", "NashMTL"])
def test_combined_gradients_are_those_of_torchjd(name, seed):
    torch, theirs = pytest.importorskip("torch"), pytest.importorskip("torchjd.aggregation")
    n = 2 + seed
    rows = gradients(seed, n, n + 20)
    settings, own, rest = {}, name.lower().removesuffix("mtl"), []
    if name == "CAGrad":
        pytest.importorskip("cvxpy")
        settings, rest = {"c": 0.5}, [0.5]
    elif name == "NashMTL":
        pytest.importorskip("ecos")
        settings = {"n_tasks": n, "max_norm": 0.0, "update_weights_every": 1, "optim_niter": 100}
    elif name == "IMTLG":
        own = "imtl_g"
    elif name == "PCGrad":
        torch.manual_seed(seed)
        orders = np.stack([torch.randperm(n).numpy() for _ in range(n)]) + 1
        orders = np.c_[np.zeros(n, int), orders, np.full(n, n + 1)]
        rest = [np.r_[orders[:1], orders, orders[:1]]]
        torch.manual_seed(seed)
    expected = getattr(theirs, name)(**settings)(torch.tensor(rows)).numpy()
    found = weights_of(own, rows, *rest) @ rows
    # Their solvers of CAGrad and Nash stop earlier than ours: of CAGrad, a precise solver finds ours, as tested above.
    tolerance = {"CAGrad": 2e-4, "NashMTL": 1e-5}.get(name, 1e-7)
    np.testing.assert_allclose(found, expected, atol=tolerance * np.abs(expected).max(), rtol=0.0)
