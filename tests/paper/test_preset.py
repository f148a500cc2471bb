"""The paper's preset, item by item: what the appendix says, and what `Imputer(preset="paper")` does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from imputers import mixed_table

pytest.importorskip("jax")

import jax.numpy as jnp

from evenly import Imputer, Training
from evenly.imputation.settings import resolve
from evenly.metrics import column_errors
from evenly.models import MODELS, SPECS
from evenly.models.layout import Data
from evenly.models.vae import VAE
from evenly.paper.datasets import N_ROWS, kinds_of
from evenly.scaling.tricks import NOISE_A, NOISE_B
from evenly.tables import Column

TABLE = mixed_table()
UNTRAINED = Training(epochs=0)


def preset(model: str = "vae", method: str = "lip-gamma", name: str = "paper") -> Any:
    return resolve(Imputer(model, method, preset=name, random_state=0))


def of_dataset(model: str, size: str) -> dict[str, int]:
    """The size of a model for each data set, by its rows and columns."""
    sizes = preset(model).model_sizes
    of_size = MODELS[model].of_size
    return {name: getattr(of_size(N_ROWS[name], len(kinds_of(name)), sizes), size) for name in EPOCHS}


def vae() -> dict[str, Any]:
    """The first parameters of the VAE on a table of six columns."""
    imputer = Imputer("vae", "std-none", preset="paper", training=UNTRAINED, random_state=0).fit(TABLE)
    return imputer.ensemble_.networks[0]


def shapes(network: str) -> list[tuple[int, ...]]:
    """The used shape of each layer; arrays are padded."""
    return [tuple((np.abs(one["weight"]) > 0.0).any(axis).sum() for axis in (1, 0)) for one in vae()[network].values()]


def spread(network: str) -> float:
    """The gain of Xavier's uniform weights: range over sqrt(6 / (inputs + outputs)), the largest layer's."""
    gains = []
    for (n_in, n_out), one in zip(shapes(network), vae()[network].values(), strict=True):
        gains.append(np.abs(one["weight"]).max() / np.sqrt(6.0 / (n_in + n_out)))
    return float(max(gains))


def biases() -> set[float]:
    found = set()
    for name in ("encoder", "mean", "rho", "decoder"):
        found |= {round(float(one), 6) for layer in vae()[name].values() for one in layer["bias"]}
    return found - {0.0}  # padding


def inputs(method: str) -> np.ndarray:
    """What the encoder sees of the table."""
    imputer = Imputer("vae", method, preset="paper", training=UNTRAINED, random_state=0).fit(TABLE)
    ensemble = imputer.ensemble_
    values = [one.fitted.encode(cells)[0] for one, cells in zip(ensemble.modelled, columns(), strict=True)]
    data = ensemble.encode(values).data(seed=0)
    return data.inputs[:, : len(ensemble.layout.inputs)]


def columns() -> list[Any]:
    from evenly.tables import open_table

    return open_table(TABLE).columns


def codes() -> np.ndarray:
    """The table as numbers, by hand: what is missing is 0."""
    by_hand = TABLE.copy()
    by_hand["class"] = by_hand["class"].map({"a": 0.0, "b": 1.0, "c": 2.0})
    by_hand["grade"] = by_hand["grade"].map({"lo": 0.0, "mid": 1.0, "hi": 2.0}).astype(float)
    return by_hand.astype(float).fillna(0.0).to_numpy()


def temperatures() -> list[float]:
    return [float(MODELS["mixture"].temperature(jnp.asarray(epoch))) for epoch in (0, 19, 20, 45, 10_000)]


def error(kind: str, truth: list[float], found: list[float]) -> float:
    column = Column(name="a", kind=kind, classes=["x", "y", "z"] if kind == "categorical" else None)
    cells = [np.array(one)[:, None] for one in (truth, found)]
    return float(column_errors([column], *cells, np.ones((len(truth), 1), bool))[0])


HALF = {"adult": 6, "breast": 5, "credit": 12, "letter": 9, "spam": 29, "wine": 7}
MOST = {"adult": 9, "breast": 8, "credit": 18, "letter": 13, "spam": 44, "wine": 10}
FIVE = {name: 5 if name in ("breast", "wine", "spam") else 10 for name in HALF}
EPOCHS = {"adult": 400, "breast": 3000, "credit": 400, "letter": 400, "spam": 2000, "wine": 2000}

APPENDIX: list[tuple[str, Callable[[], Any], Any]] = [
    # Mixture model
    (
        "K=5 if the dataset is Breast, Wine, or spam, and K=10 otherwise",
        lambda: of_dataset("mixture", "n_clusters"),
        FIVE,
    ),
    (
        "a temperature that updates every 20 epochs as max(0.001, e^(-0.001 epoch))",
        temperatures,
        pytest.approx([1.0, 1.0, np.exp(-0.02), np.exp(-0.04), 0.001]),
    ),
    # Matrix factorization
    ("half the number of dimensions", lambda: of_dataset("factorization", "latent_size"), HALF),
    # VAE
    ("Encoder: 3-layer neural network", lambda: [n for _, n in shapes("encoder")], [256] * 3),
    ("Decoder: 4-layer neural network", lambda: [n for _, n in shapes("decoder")][:3], [256] * 3),
    (
        "four layers of the decoder, from the latent vector on",
        lambda: (len(shapes("decoder")), shapes("decoder")[0][0]),
        (4, 5),
    ),
    ("Hidden layers have 256 neurons", lambda: VAE.of_size(1, 1, {}).hidden_size, 256),
    ("75 % of the data number of dimensions (before preprocessing)", lambda: of_dataset("vae", "latent_size"), MOST),
    ("Xavier uniform policy: before a tanh", lambda: spread("encoder"), pytest.approx(5.0 / 3.0, rel=1e-2)),
    ("Xavier uniform policy: before a ReLU", lambda: spread("decoder"), pytest.approx(np.sqrt(2.0), rel=1e-2)),
    ("Xavier uniform policy: mean of the latent vector", lambda: spread("mean"), pytest.approx(1.0, rel=1e-2)),
    ("Xavier uniform policy: its spread", lambda: spread("rho"), pytest.approx(1.0, rel=1e-2)),
    (
        "two linear layers, one for the mean and another for the log-scale",
        lambda: [shapes("mean"), shapes("rho")],
        [[(256, 5)]] * 2,
    ),
    ("biases of the published networks", biases, {0.01}),
    ("input-dropout: missing cells are 0; raw values", lambda: inputs("std-none"), pytest.approx(codes(), rel=1e-6)),
    ("a batch-normalization layer at the beginning", lambda: sorted(vae()["norm"]), ["gain", "offset"]),
    # Experimental setup
    (
        "Adam and a learning rate of 1e-3 for all models but matrix factorization, 1e-2",
        lambda: {name: preset(name).training.rate_of(SPECS[name]) for name in ("mixture", "factorization", "vae")},
        {"mixture": 1e-3, "factorization": 1e-2, "vae": 1e-3},
    ),
    (
        "Batch size is set to 1024 in all cases",
        lambda: {preset().training.batch_size_of(SPECS["vae"], n) for n in N_ROWS.values()},
        {1024},
    ),
    (
        "400 epochs for the biggest datasets, 2000 for Wine and spam, 3000 for Breast",
        lambda: {n: preset().training.epochs_of(SPECS["vae"], N_ROWS[n], paper=True, streamed=False) for n in EPOCHS},
        EPOCHS,
    ),
    ("nominal data: the error rate", lambda: error("categorical", [0, 1, 2, 2], [0, 1, 1, 2]), 0.25),
    (
        "numerical: the root mean squared error over the range",
        lambda: error("real", [0, 4, 8], [1, 4, 7]),
        pytest.approx(np.sqrt(2 / 3) / 8),
    ),
    ("In our experiments we use noise Beta(1.1, 30)", lambda: (NOISE_A, NOISE_B), (1.1, 30.0)),
    (
        "L* = 1 / (D alpha), D columns",
        lambda: Imputer("vae", preset="paper", training=UNTRAINED, random_state=0).fit(TABLE).scaler_.target_,
        pytest.approx(1.0 / (6 * 1e-3)),
    ),
    (
        "likelihoods by kind: normal, log-normal, Poisson, Bernoulli, categorical",
        lambda: [str(one.likelihood) for one in Imputer("marginal", preset="paper").fit(TABLE).schema_.columns][:5],
        ["normal", "log-normal", "poisson", "bernoulli", "categorical"],
    ),
]


@pytest.mark.parametrize(("does", "expected"), [row[1:] for row in APPENDIX], ids=[row[0] for row in APPENDIX])
def test_the_preset_does_what_the_appendix_says(does, expected) -> None:
    assert does() == expected


def test_the_other_preset_and_none_have_inputs_that_do_not_depend_on_the_method() -> None:
    for name in ("paper-plus", None):
        made = [
            Imputer("vae", method, preset=name, training=UNTRAINED, random_state=0).fit(TABLE).ensemble_
            for method in ("std-none", "lip-gamma")
        ]
        assert not any(one.model.published for one in made)
        assert made[0].layout.inputs == made[1].layout.inputs


# --- batch normalization, against PyTorch ---------------------------------------------------------------------------


def batch(n: int = 12) -> Data:
    """Rows of which the last four are padding."""
    rng = np.random.default_rng(0)
    given = np.r_[rng.normal(3.0, [2.0, 0.01, 100.0], (n - 4, 3)), np.full((4, 3), 77.0)].astype(np.float32)
    return Data(given, np.zeros((n, 1), np.float32), np.arange(n)[:, None] < n - 4)


@pytest.mark.more
def test_a_batch_is_normalized_as_by_pytorch() -> None:
    torch = pytest.importorskip("torch")
    layer, model = torch.nn.BatchNorm1d(3, momentum=None), VAE(2, 8, published=True)
    real = torch.tensor(batch().inputs[:8])
    expected = layer(real).detach().numpy()
    norm = {"gain": np.ones(3, np.float32), "offset": np.zeros(3, np.float32)}
    shared = {"norm": norm, "table_mean": np.zeros(3), "table_variance": np.ones(3)}
    found = np.asarray(model._normalize(shared, batch(), training=True))[:8]
    np.testing.assert_allclose(found, expected, atol=2e-4)
    shared |= {"table_mean": batch().inputs[:8].mean(0), "table_variance": batch().inputs[:8].var(0, ddof=1)}
    found = np.asarray(model._normalize(shared, batch(), training=False))[:8]
    np.testing.assert_allclose(found, layer.eval()(real).detach().numpy(), atol=2e-4)
    for name, gain in (("tanh", 5.0 / 3.0), ("relu", np.sqrt(2.0))):
        assert torch.nn.init.calculate_gain(name) == pytest.approx(gain)


@pytest.mark.more
def test_it_is_saved_with_the_moments_of_its_table(tmp_path) -> None:
    imputer = Imputer("vae", preset="paper", training=Training(epochs=2), random_state=0).fit(TABLE)
    imputer.save(tmp_path)
    again = Imputer.load(tmp_path)
    assert again.ensemble_.model.published
    np.testing.assert_array_equal(again.predict_cells(TABLE), imputer.predict_cells(TABLE))
    assert (again.ensemble_.networks[0]["norm"]["gain"] != 1.0).any()  # learned


@pytest.mark.more
def test_a_rows_prediction_depends_on_no_other_row() -> None:
    """By the moments of the table, not by those of the rows that are predicted together."""
    imputer = Imputer("vae", preset="paper", training=Training(epochs=2), random_state=0).fit(TABLE)
    np.testing.assert_array_equal(imputer.predict_cells(TABLE.iloc[3:5]), imputer.predict_cells(TABLE)[3:5])
