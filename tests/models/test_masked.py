"""The masked model: what it hides, what it learns, what its distributions mean, and what it holds out."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from imputers import make_imputer
from model_data import place
from scipy import stats

from evenly import EvenlyWarning, Imputer, TableError, imputation_error
from evenly.imputation.calibration import PLAIN
from evenly.imputation.columns import describe
from evenly.imputation.encoding import EncodedColumn, EncodedTable, lay_out
from evenly.imputation.fitting import validation_score
from evenly.imputation.predictor import central_draws, count_draws
from evenly.imputation.validation import ValidationCells, calibrate
from evenly.likelihoods.continuous import NORMAL, UNIT_NORMAL
from evenly.likelihoods.discrete import BERNOULLI
from evenly.likelihoods.registry import get_likelihood
from evenly.metrics import hold_out
from evenly.models import MODELS, PAPERS, Plan, Watchers, bbvi, fitting, layers
from evenly.models.layout import Data, Layout
from evenly.models.loop import train
from evenly.models.masked import Masked, _drop
from evenly.models.wiring import wire
from evenly.scaling.scaler import LipschitzScaler
from evenly.scaling.smoothness import scaled_smoothness
from evenly.tables.frames import open_table

LAYOUT = Layout((UNIT_NORMAL, get_likelihood("categorical", 4), BERNOULLI), (0, 0, 1), (0, 1), (0,))


def two_columns(n: int = 400, seed: int = 0) -> Data:
    """A number and a yes or no that goes with it."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    yes = (x > 0.0).astype(float)
    mask = np.ones((n, 3), bool)
    mask[: n // 10, :2] = False
    targets = np.column_stack([x, np.digitize(x, [-1.0, 0.0, 1.0]), yes]).astype(np.float32)
    inputs = np.column_stack([x, (yes - yes.mean()) / yes.std()]).astype(np.float32)
    return place(LAYOUT, np.where(mask[:, [0, 2]], inputs, 0.0), targets, mask)


def linked_table(n: int = 1500, seed: int = 0) -> pd.DataFrame:
    """Columns that say much about each other; a fifth of the cells is missing."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    table = pd.DataFrame(
        {
            "x": x,
            "double": 2.0 * x + 0.3 * rng.normal(size=n),
            "amount": np.where(rng.random(n) < 0.4, 0.0, np.exp(x + 0.3 * rng.normal(size=n))),
            "visits": rng.poisson(np.exp(0.5 * x)).astype(float),
            "sign": np.where(x + 0.2 * rng.normal(size=n) > 0.0, "plus", "minus"),
        }
    )
    return table


def hide(table: pd.DataFrame, share: float = 0.2, seed: int = 1) -> tuple[pd.DataFrame, np.ndarray]:
    hidden = np.random.default_rng(seed).random(table.shape) < share
    return table.mask(hidden), hidden


@pytest.fixture(scope="module")
def learned() -> tuple[Imputer, pd.DataFrame, pd.DataFrame, np.ndarray]:
    table = linked_table()
    holed, hidden = hide(table)
    imputer = make_imputer(epochs=60, hidden_size=64, n_networks=1, random_state=0).fit(holed)
    return imputer, table, holed, hidden


# --- the model ---


def test_hidden_and_visible_cells_are_the_observed_ones_and_the_weight_makes_up_for_the_rest():
    observed = two_columns(20_000).mask
    visible, hidden, weight = layers.hide_cells(layers.draw_rows(jax.random.key(0), 20_000, 4), observed)
    assert bool((visible ^ hidden == observed).all())
    assert not bool((visible & hidden).any())
    assert float(weight * hidden.sum() / observed.sum()) == pytest.approx(1.0, abs=0.02)
    shares = np.asarray(hidden.sum(1) / np.maximum(observed.sum(1), 1))
    assert 0.005 < (shares == 1.0).mean() < 0.1  # now and then nothing of a row is visible


def test_a_fifth_of_the_units_is_dropped_and_the_others_make_up_for_it():
    drawn = jax.lax.bitcast_convert_type(layers.draw_rows(jax.random.key(0), 500, 50), np.uint8).reshape(500, -1)
    kept = np.asarray(_drop(drawn, jnp.ones((500, 200)), 20))
    assert (kept == 0.0).mean() == pytest.approx(0.2, abs=0.01)
    assert kept.mean() == pytest.approx(1.0, abs=0.01)
    assert len(np.unique(kept)) == 2


def test_hidden_cells_cannot_be_seen():
    """What a network says about a row does not change with a cell that it is not shown."""
    model, data = Masked(8), two_columns(20)
    start = model.init(np.random.default_rng(0), LAYOUT, data)
    shared = {**start.shared, **start.fixed}
    shared["last"]["weight"] = np.random.default_rng(1).normal(size=shared["last"]["weight"].shape)
    dark = data._replace(mask=data.mask & [False, True])
    changed = dark._replace(inputs=dark.inputs + np.array([3.0, 0.0]))
    raw = [
        model.predict(shared, {}, None, wire(LAYOUT), one)
        for one in (dark, changed, data, data._replace(inputs=changed.inputs))
    ]
    np.testing.assert_array_equal(raw[0], raw[1])
    assert not np.allclose(raw[2][5:], raw[3][5:])


def test_a_cell_is_never_predicted_from_itself_in_training():
    """A column is scored where it is hidden: whatever its own cells are then, it is scored the same."""
    model, data = Masked(8), two_columns(50)
    start = model.init(np.random.default_rng(0), LAYOUT, data)
    shared = {**start.shared, **start.fixed}
    shared["last"]["weight"] = np.random.default_rng(1).normal(size=shared["last"]["weight"].shape)
    terms = jax.jit(lambda one: model.terms(shared, {}, jax.random.key(0), wire(LAYOUT), one, 0).log_likelihood)
    found = np.asarray(terms(data))
    for column in range(2):
        other = np.asarray(terms(data._replace(inputs=data.inputs + 3.0 * (np.arange(2) == column))))
        np.testing.assert_array_equal(other[:, column], found[:, column])
        assert (other[:, 1 - column] != found[:, 1 - column]).any()


def test_it_starts_from_what_each_column_is_alone():
    model, data = Masked(8), two_columns()
    start = model.init(np.random.default_rng(0), LAYOUT, data)
    shared = {**start.shared, **start.fixed}
    shared["last"]["weight"] = np.zeros_like(shared["last"]["weight"])
    normal, bins, yes = model.predict_natural(LAYOUT, shared, data)
    seen, (x, codes, answer) = data.mask[:, 0], (LAYOUT.target(data, f) for f in range(3))
    assert float(normal[0, 0]) == pytest.approx(float(x[seen].mean()), abs=1e-6)
    counts = np.bincount(codes[seen].astype(int), minlength=4) + 0.5
    np.testing.assert_allclose(jax.nn.softmax(bins[0]), counts / counts.sum(), rtol=1e-5)
    assert float(jax.nn.sigmoid(yes[0, 0])) == pytest.approx(float(answer.mean()), abs=1e-6)


def test_the_first_layer_sees_a_number_by_its_places_between_quantiles():
    """Against a plain loop; few whole numbers need no more pieces than they have steps."""
    model, data = Masked(8, n_knots=4), two_columns(200)
    layout = Layout((UNIT_NORMAL,) * 2, (0, 1), (0, 1), (0, 1))
    x, steps = data.inputs[:, 0], np.random.default_rng(1).integers(0, 3, 200)
    data = place(layout, np.column_stack([x, steps]), np.zeros((200, 2), np.float32), np.ones((200, 2), bool))
    start = model.init(np.random.default_rng(0), layout, data)
    seen = np.asarray(model._encode(start.fixed, data.inputs, data.mask))
    knots = np.quantile(x, [0.0, 0.25, 0.5, 0.75, 1.0])
    for k in range(4):
        expected = np.clip((x - knots[k]) / (knots[k + 1] - knots[k]), 0.0, 1.0)
        np.testing.assert_allclose(seen[:, 1 + k], expected, atol=1e-5)
    np.testing.assert_allclose(seen[:, 0], x, atol=1e-6)
    np.testing.assert_array_equal(seen[:, 6:8], np.column_stack([steps > 0, steps > 1]))
    np.testing.assert_array_equal(seen[:, 8:10], 1.0)  # both columns are visible
    assert not seen[:, 10:].any()
    assert not np.asarray(model._encode(start.fixed, data.inputs, ~data.mask)).any()


def test_the_learning_rate_rises_and_falls():
    model = Masked()
    rates = [float(model.schedule(jnp.asarray(progress))) for progress in np.linspace(0.0, 1.0, 101)]
    top = int(np.argmax(rates))
    assert rates[0] == 0.0
    assert rates[top] == pytest.approx(1.0, abs=1e-3)
    assert (np.diff(rates[top:]) < 0.0).all()
    assert rates[-1] == pytest.approx(0.01, abs=1e-6)
    assert float(model.schedule(0.25)) == pytest.approx(rates[25], rel=1e-6)  # outside of a program, too
    assert [float(MODELS[name]().schedule(jnp.asarray(0.5))) for name in PAPERS] == [1.0] * 3


@pytest.mark.more
def test_weight_decay_touches_weights_only():
    data = two_columns(64)
    model = Masked(8)
    state = bbvi.start(model, LAYOUT, data, 0, 1e-2).of_steps(100.0)
    state = state._replace(shared_moments=state.shared_moments._replace(count=jnp.asarray(50)))
    zero = state._replace(weights=jnp.zeros(2))  # no gradient at all: what moves is the decay
    after, _ = jax.jit(bbvi.step, static_argnums=0)(model, wire(LAYOUT), data, zero, jnp.arange(64))
    rate = 1e-2 * float(model.schedule(jnp.asarray(0.5)))
    weight = state.shared["first"]["weight"]
    np.testing.assert_allclose(after.shared["first"]["weight"], weight * (1.0 - rate * model.weight_decay), rtol=1e-5)
    jax.tree.map(np.testing.assert_array_equal, after.fixed, state.fixed)
    np.testing.assert_array_equal(after.shared["last"]["bias"], state.shared["last"]["bias"])


def test_weights_weigh_the_columns_gradients():
    data, model = two_columns(64), MODELS["vae"](2, 8)
    state = bbvi.start(model, LAYOUT, data, 0, 1e-3)

    @jax.jit
    @jax.grad
    def gradients(shared: object, weights: jax.Array) -> jax.Array:
        weighed = state._replace(weights=weights)
        return bbvi.objective(model, wire(LAYOUT), (shared, {}), jax.random.key(1), data, weighed, jnp.ones(64, bool))[
            0
        ]

    def gradient(weights: list[float]) -> np.ndarray:
        found = gradients(state.shared, jnp.asarray(weights))
        return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(found)])

    both, first, second, none = (gradient(w) for w in ([1.0, 1.0], [1.0, 0.0], [0.0, 1.0], [0.0, 0.0]))
    np.testing.assert_allclose(first + second - none, both, atol=1e-5)
    np.testing.assert_allclose(gradient([3.0, 1.0]), 3.0 * (first - none) + second, rtol=1e-3, atol=1e-4)


@pytest.mark.more
def test_the_vae_learns_from_hidden_cells_too():
    data = two_columns()
    for masked in (False, True):
        model = MODELS["vae"](2, 32, masked)
        state = bbvi.start(model, LAYOUT, data, 0, 1e-3)
        state, _ = train(model, LAYOUT, data, state, epochs=60, batch_size=64)
        dark = data._replace(mask=data.mask & [True, False], inputs=data.inputs * [1.0, 0.0])
        yes = model.predict_natural(LAYOUT, state.shared, dark)[2][:, 0] > 0.0
        right = yes == (LAYOUT.target(data, 2) > 0.5)
        assert right[data.mask[:, 0]].mean() > (0.9 if masked else 0.5)


# --- balance ---


def test_weighted_columns_are_equally_smooth():
    holed, _ = hide(linked_table())
    scaler = LipschitzScaler("lip-none", random_state=0).fit(holed)
    opened = open_table(holed)
    values = [one.encode(cells)[0] for one, cells in zip(scaler.columns_, opened.columns, strict=True)]
    specs = [describe(one, own, binned=True) for one, own in zip(scaler.columns_, values, strict=True)]
    layout = lay_out(specs)
    weights = EncodedTable(tuple(map(EncodedColumn, specs, values)), layout).balancing_weights()
    naturals = [one for spec in specs for one in spec.marginal_naturals]
    smoothness = np.zeros(layout.n_columns)
    for family, column, natural in zip(layout.likelihoods, layout.columns, naturals, strict=True):
        # By finite differences of the log-partition, not by `fisher`.
        at, step, n = np.asarray(natural, np.float64), 1e-3, len(natural)
        for i in range(n):
            for j in range(n):
                e, f = np.eye(n)[i] * step, np.eye(n)[j] * step
                a = [float(family.log_partition(at + u + v)) for u, v in ((e, f), (e, -f), (-e, f), (-e, -f))]
                smoothness[column] += abs(a[0] - a[1] - a[2] + a[3]) / (4.0 * step * step)
    weighted = weights * smoothness
    inside = (weights > 0.25) & (weights < 4.0)
    assert inside.sum() >= 3
    np.testing.assert_allclose(weighted[inside], weighted[inside][0], rtol=1e-3)


def test_the_smoothness_of_a_unit_normal_never_changes():
    assert [scaled_smoothness(UNIT_NORMAL, np.array([mean]), 1.0) for mean in (-1e3, 0.0, 5.0)] == [1.0] * 3
    narrow, wide = (scaled_smoothness(NORMAL, NORMAL.to_natural(np.array([0.0, std])), 1.0) for std in (0.1, 10.0))
    assert wide / narrow > 1e4  # whereas that of a normal goes with its spread


# --- held-out cells ---


def test_a_share_of_every_columns_observed_cells_is_held_out():
    observed = np.random.default_rng(0).random((5000, 3)) < 0.7
    observed[:, 2] = False
    observed[:5, 2] = True
    held = hold_out(observed, np.random.default_rng(1))
    assert not (held & ~observed).any()
    np.testing.assert_allclose(held[:, :2].sum(0) / observed[:, :2].sum(0), 0.05, atol=1e-3)
    assert held[:, 2].sum() == 0  # too few to give any away


def test_held_out_cells_are_neither_shown_nor_trained_on():
    """The data that a network is trained on do not show them, and each network gives others away."""
    holed, _ = hide(linked_table(300))
    seen: list[Data] = []

    def spy(model, layout, data, *args, **settings):
        seen.append(data)
        return fit_model(model, layout, data, *args, **settings)

    from evenly.models.fitting import fit_model

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("evenly.models.fitting.fit_model", spy)
        make_imputer(epochs=1, hidden_size=8, n_networks=2, random_state=0).fit(holed)
    observed = int(holed.notna().to_numpy().sum())
    first, second = (data.mask for data in seen)
    assert 0.85 * observed < first.sum() < observed
    assert not np.array_equal(first, second)  # each network gives other cells away


def test_a_training_that_ends_early_lets_the_learning_rate_fall_from_its_best_point():
    """The score likes the parameters after 8 of 40 epochs best, and later ones less and less."""
    data, model = two_columns(), Masked(16)
    asked = []

    def score(shared):
        asked.append(shared)
        return -abs(len(asked) - 5.0)

    shared, history, _ = fitting.fit_model(model, LAYOUT, data, 0, Plan(1e-2, 40, 64), Watchers(score))
    # Scored before the first epoch and after every other one; four points after the best, and 4 epochs in the end.
    assert len(asked) == 5 + fitting.PATIENCE + 1
    assert len(history.elbo) == 2 * (4 + fitting.PATIENCE) + 4
    jax.tree.map(np.testing.assert_array_equal, shared, asked[4])

    state = bbvi.start(model, LAYOUT, data, 0, 1e-2).of_steps(100.0)
    state = state._replace(shared_moments=state.shared_moments._replace(count=jnp.asarray(30)))
    cooled = fitting._cool_down(model, state, 20.0)

    def rate(one: bbvi.State, later: int) -> float:
        return float(one.learning_rate * model.schedule((one.shared_moments.count + later) / one.n_steps))

    assert rate(cooled, 0) == pytest.approx(rate(state, 0), rel=1e-5)
    falling = [rate(cooled, later) for later in range(21)]
    assert falling == sorted(falling, reverse=True)
    assert falling[-1] < 0.05 * falling[0]


def test_the_validation_score_prefers_parameters_that_predict():
    data, model = two_columns(), Masked(16)
    held = hold_out(data.mask, np.random.default_rng(0))
    shown = data._replace(mask=data.mask & ~held)
    score = validation_score(model, LAYOUT, shown, held)
    assert score is not None
    shared, history, _ = fitting.fit_model(model, LAYOUT, shown, 0, Plan(1e-2, 40, 64), Watchers(score))
    state = bbvi.start(model, LAYOUT, shown, 0, 1e-2)
    begun = {**state.shared, **state.fixed}
    assert score(shared) > score(begun) + 0.1
    assert score({**jax.tree.map(lambda leaf: leaf * np.nan, state.shared), **state.fixed}) == -np.inf
    assert validation_score(model, LAYOUT, data, np.zeros_like(held)) is None
    assert len(history.elbo) <= 40


def test_a_model_that_knows_nothing_is_not_trusted():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.normal(size=400), "c": rng.choice(["a", "b"], 400, p=[0.7, 0.3])})
    scaler = LipschitzScaler("lip-none").fit(table)
    opened = open_table(table)
    number, classes = scaler.columns_
    x, codes = number.encode(opened.columns[0])[0], classes.encode(opened.columns[1])[0]
    spec = describe(number, x, binned=True)
    noise = (rng.permutation(x) - spec.mean)[:, None] * spec.scale
    bins = np.tile(np.log(np.asarray(spec.bins.share)), (400, 1))
    lost = calibrate(ValidationCells(spec, x, [noise, bins], None))
    assert lost.bin_weight == 1.0 or lost.model_weight < 0.3
    right = calibrate(ValidationCells(spec, x, [(x - spec.mean)[:, None] * spec.scale, bins], None))
    assert (right.bin_weight, right.model_weight) == (0.0, pytest.approx(1.0))
    spec = describe(classes, codes)
    wrong = calibrate(ValidationCells(spec, codes, [(1.0 - 2.0 * codes)[:, None] * 5.0], None))
    assert wrong.model_weight == 0.0
    right = calibrate(ValidationCells(spec, codes, [(2.0 * codes - 1.0)[:, None] * 5.0], None))
    assert right.model_weight == 1.0


def test_predictions_that_do_no_better_than_the_mean_do_not_go_far_from_it():
    """Held-out cells are few: where they show no gain, one that goes ten times as far has not been seen to be right."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.normal(size=400)})
    column = LipschitzScaler("lip-none").fit(table).columns_[0]
    x = table["x"].to_numpy()
    spec = describe(column, x, binned=True)
    flat = np.log(np.asarray(spec.bins.share))

    def naturals(predicted):
        return [(np.asarray(predicted) - spec.mean)[:, None] * spec.scale, np.tile(flat, (len(predicted), 1))]

    def calibrated(predicted):
        chosen = calibrate(ValidationCells(spec, x[held], naturals(predicted), None))
        return replace(chosen, bin_weight=0.0, model_weight=1.0)

    held, far = slice(0, 40), np.array([-10.0, 0.1, 10.0])
    useless = calibrated(0.3 * rng.normal(size=40))
    known = spec.predict(naturals(far), useless).mean()
    np.testing.assert_allclose(np.abs(known - spec.mean)[[0, 2]], useless.max_deviation)
    assert useless.max_deviation < 4.0
    assert known[1] == pytest.approx(0.1, abs=1e-6)
    useful = calibrated(x[held])
    np.testing.assert_allclose(spec.predict(naturals(far), useful).mean(), far, atol=1e-6)


def yes_or_no(n: int, seed: int, too_sure: float = 1.0, kind: str = "binary", n_classes: int = 2):
    """A fitted column of classes, its codes, and the natural parameters of a model that is right but for `too_sure`."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n, n_classes))
    codes = np.argmax(logits + rng.gumbel(size=logits.shape), axis=1).astype(float)
    table = pd.DataFrame({"c": np.array(["a", "b", "c", "d"])[codes.astype(int)]})
    column = LipschitzScaler("lip-none", kinds={"c": kind}).fit(table).columns_[0]
    logits = logits[:, 1:] - logits[:, :1] if kind == "binary" else logits
    return column, codes, [too_sure * logits]


@pytest.mark.more
def test_a_column_that_hardly_varies_gets_its_mean():
    """Four cells of 600 tell nothing of who has them: cells that look alike must not be imputed worse than the mean."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.normal(size=600), "rare": np.zeros(600)})
    table.loc[table["x"].nlargest(4).index, "rare"] = [1.0, 1.0, 3.0, 8.0]
    table.loc[table["x"].nlargest(200).index[4:], "rare"] = np.nan
    full = make_imputer(epochs=20, hidden_size=16, n_networks=1, random_state=0).fit_transform(table)
    imputed = full["rare"][table["rare"].isna()]
    np.testing.assert_allclose(imputed, table["rare"].mean(), rtol=1e-6)


@pytest.mark.parametrize(("kind", "n_classes"), [("binary", 2), ("categorical", 2), ("categorical", 4)])
def test_a_model_that_is_too_sure_of_classes_is_made_less_sure(kind, n_classes):
    column, codes, naturals = yes_or_no(600, 0, 4.0, kind, n_classes)
    spec = describe(column, codes)
    calibrated = calibrate(ValidationCells(spec, codes, naturals, None))
    assert calibrated.inverse_temperature < 0.5
    _, fresh, naturals = yes_or_no(2000, 1, 4.0, kind, n_classes)
    before, after = (spec.predict(naturals, one).log_prob(fresh).mean() for one in (PLAIN, calibrated))
    assert after > before + 0.3
    _, codes, naturals = yes_or_no(600, 0, 1.0, kind, n_classes)
    assert 0.7 <= calibrate(ValidationCells(spec, codes, naturals, None)).inverse_temperature <= 1.3


@pytest.mark.parametrize(("kind", "n_classes"), [("binary", 2), ("categorical", 4)])
def test_a_model_of_classes_that_often_knows_nothing_is_trusted_in_part(kind, n_classes):
    """What is sure and right in half of the rows, and sure of anything in the others, no power makes right."""
    column, codes, naturals = yes_or_no(600, 0, 1.0, kind, n_classes)
    n_inputs, rng = naturals[0].shape[1], np.random.default_rng(0)
    said = np.where(rng.random(600) < 0.6, codes, rng.integers(0, n_classes, 600))
    sure = 6.0 * (said[:, None] == np.arange(n_classes)) if n_inputs > 1 else 12.0 * said[:, None] - 6.0
    calibrated = calibrate(ValidationCells(describe(column, codes), codes, [sure], None))
    assert 0.25 <= calibrated.model_weight <= 0.75


def test_the_intervals_of_a_number_are_calibrated_as_they_will_be_used():
    """A model that is worth half its trust is mixed with the column's shares; intervals of the mixture are to cover."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=2000)
    number = LipschitzScaler("lip-none").fit(pd.DataFrame({"x": x})).columns_[0]
    spec = describe(number, x, binned=True)
    guess = 0.5 * x + rng.normal(size=2000)
    away = (np.asarray(spec.bins.means(np.eye(len(spec.bins)))) - guess[:, None]) / 0.7
    naturals = [(guess - spec.mean)[:, None] * spec.scale, -0.5 * away**2]
    calibrated = calibrate(ValidationCells(spec, x, naturals, None))
    assert 0.2 < calibrated.model_weight < 0.7
    ranks = spec.bins.ranks(spec.predict(naturals, calibrated).probabilities, x, np.random.default_rng(0))
    for level in (0.5, 0.8, 0.9):
        assert (np.abs(ranks - 0.5) < 0.5 * level).mean() == pytest.approx(level, abs=0.015)


# --- numbers near the largest ---


def nearly_infinite(n: int = 200) -> pd.DataFrame:
    """Numbers as large as they can be, on both sides of 0: the difference of two is none."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1.0, 1.0, n)
    return pd.DataFrame({"x": 1.7e308 * np.append(x[:-2], [-1.0, 1.0]), "y": x + 0.1 * rng.normal(size=n)})


@pytest.mark.parametrize("method", ["lip-none", "max-none", "iqr-none"])
def test_numbers_near_the_largest_are_standardized_and_come_back_within_the_column(method):
    table = nearly_infinite()
    fitted = LipschitzScaler("lip-none").fit(table).columns_[0]
    values = fitted.encode(open_table(table).columns[0])[0]
    spec = describe(fitted, values, binned=True, method=method)
    assert spec.scale > 0.0
    layout = lay_out([spec])
    data = EncodedTable((EncodedColumn(spec, values),), layout).data(seed=None)
    standard = (values / 1e308 - (values / 1e308).mean()) / (values / 1e308).std()
    np.testing.assert_allclose(data.inputs[:, 0], standard, rtol=1e-5)
    np.testing.assert_allclose(layout.target(data, 0) / (spec.scale * spec.std), standard, rtol=1e-5)
    far = np.array([[-20.0], [0.0], [20.0]]) * spec.scale * spec.std
    found = spec.predict([far, np.zeros((3, len(spec.bins)))])
    for one in (found, found.mix([found] * 2)):
        assert (np.abs(one.mean()) <= 1.7e308).all()
        assert (np.diff(one.mean()) > 0.0).all()
        assert np.isfinite(one.std).all()


@pytest.mark.more
def test_numbers_near_the_largest_are_imputed_without_a_warning():
    holed, _ = hide(nearly_infinite())
    imputer = make_imputer(epochs=2, hidden_size=8, n_networks=2, random_state=0).fit(holed)
    for full in (imputer.transform(holed), *imputer.interval(holed), *imputer.sample(holed, 1)):
        assert (full["x"].abs() <= 1.7e308).all()


# --- the imputer ---


def test_masked_is_the_default_and_the_papers_model_that_of_its_preset():
    assert Imputer().model_name == "masked"
    assert Imputer(preset="paper").model_name == "vae"


def test_it_learns_what_columns_say_about_each_other(learned):
    imputer, table, holed, hidden = learned
    errors = imputation_error(table, imputer.transform(holed), hidden).set_index("column")
    # What is left of `double` given x is 0.3 of 2; x is missing in a fifth of the rows, where little is known.
    assert errors.loc["double", "normalized"] < 0.6
    assert errors.loc["x", "normalized"] < 0.6
    assert errors.loc["sign", "normalized"] < 0.6
    assert (errors["normalized"] < 1.02).all()


@pytest.mark.more
def test_a_model_that_learns_nothing_gains_nothing_over_the_baseline():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=150), "c": rng.choice(list("uvw"), 150)})
    # At this rate nothing moves. Each epoch hides other cells, more or fewer: a mean over 60 is known to 2 %.
    imputer = make_imputer(epochs=200, learning_rate=1e-9, hidden_size=8, n_networks=1, random_state=0).fit(table)
    for name, curve in imputer.history_["log_likelihood"].items():
        assert len(curve) >= 60
        assert curve.mean() == pytest.approx(imputer.baseline_[name], rel=0.05)


def test_intervals_hold_as_many_cells_as_they_say(learned):
    imputer, table, holed, hidden = learned
    for level in (0.5, 0.9):
        low, high = imputer.interval(holed, level)
        held = []
        for name in ("x", "double"):  # continuous: an atom would be held more often than said
            cells = hidden[:, list(table).index(name)]
            held.append(table[name].between(low[name], high[name])[cells].mean())
            assert (low[name] <= high[name]).all()
        assert np.mean(held) == pytest.approx(level, abs=0.08)
        assert low["sign"].equals(high["sign"])
        pd.testing.assert_frame_equal(low.where(holed.notna()), holed)
    with pytest.raises(TableError, match="level"):
        imputer.interval(holed, 1.5)


@pytest.mark.parametrize("level", [0.05, 0.5, 0.9, 0.99, 0.998])
def test_one_more_draw_lies_between_central_draws_as_often_as_said(level):
    rng, n_cells = np.random.default_rng(0), 20_000
    n_draws = count_draws(level)
    # Uniform draws: what lies between the ends is their distance.
    held = np.mean(
        [np.subtract(*central_draws(rng.random((n_draws, 200)), level)[::-1]).mean() for _ in range(n_cells // 200)]
    )
    # At most one of the n + 1 places is too many at each end.
    assert level - 0.001 <= held <= level + 2.0 / (n_draws + 1) + 0.001


@pytest.mark.more
def test_intervals_of_the_papers_models_come_from_draws():
    holed, _ = hide(linked_table(100))
    imputer = make_imputer("mixture", "std-none", epochs=2, random_state=0).fit(holed)
    low, high = imputer.interval(holed, 0.8)
    gone = holed["x"].isna()
    assert (low["x"] <= high["x"]).all()
    assert (low["x"] < high["x"])[gone].mean() > 0.9
    assert low["sign"].equals(high["sign"])


def test_samples_keep_what_columns_say_about_each_other(learned):
    """Drawn one after the other, a row's missing cells go together, as the columns do; drawn each alone they do not."""
    imputer, _, holed, _ = learned
    both = holed.copy()
    both.loc[:399, ["x", "double"]] = np.nan
    drawn = imputer.sample(both, 2)
    for one in drawn:
        slope = stats.linregress(one["x"][:400], one["double"][:400]).slope
        assert slope == pytest.approx(2.0, abs=0.5)
        assert one["visits"].eq(one["visits"].round()).all()
    assert not drawn[0].equals(drawn[1])


@pytest.mark.more
def test_whole_numbers_in_float_columns_get_their_mean_and_integers_stay_integers():
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    counts = rng.poisson(np.exp(1.0 + 0.5 * x)).astype(float)
    counts[:60] = np.nan
    floats = pd.DataFrame({"x": x, "n": counts})
    settings = {"epochs": 5, "hidden_size": 16, "n_networks": 1, "random_state": 0}
    full = make_imputer(**settings).fit_transform(floats)
    assert (full["n"] != full["n"].round())[:60].any()
    integers = make_imputer(**settings).fit_transform(floats.astype({"n": "Int64"}))
    assert integers["n"].dtype == "Int64"
    assert (integers["n"][:60] - full["n"][:60].round()).abs().max() <= 1
    median = make_imputer(estimate="median", **settings).fit_transform(floats)
    assert median["n"].eq(median["n"].round()).all()


@pytest.mark.more
def test_several_networks_are_averaged(learned):
    _, _, holed, _ = learned
    imputer = make_imputer(epochs=1, hidden_size=8, n_networks=3, random_state=0).fit(holed)
    assert len(imputer.ensemble_.networks) == 3
    together = imputer.distribution(holed)["sign"].probability
    ensemble, alone = imputer.ensemble_, []
    for network in ensemble.networks:
        imputer.ensemble_ = replace(ensemble, networks=[network])
        alone.append(imputer.distribution(holed)["sign"].probability)
    np.testing.assert_allclose(together, np.mean(alone, 0), rtol=1e-6)
    assert not np.allclose(alone[0], alone[1])


@pytest.mark.more
def test_networks_trained_before_an_interrupt_are_used(monkeypatch):
    """Whatever the next one was doing."""
    holed, _ = hide(linked_table(60))

    fit_model = fitting.fit_model

    def stopped(model, layout, data, seed, *args, **settings):
        if seed != first:
            raise KeyboardInterrupt
        return fit_model(model, layout, data, seed, *args, **settings)

    imputer = make_imputer(epochs=1, hidden_size=8, n_networks=3, random_state=0)
    first = int(np.random.RandomState(0).randint(2**31 - 1))
    monkeypatch.setattr("evenly.models.fitting.fit_model", stopped)
    with pytest.warns(EvenlyWarning, match="interrupted: 1 of 3 networks"):
        imputer.fit(holed)
    assert len(imputer.ensemble_.networks) == 1
    assert not imputer.transform(holed).isna().any(axis=None)


@pytest.mark.more
def test_a_declared_likelihood_is_used():
    holed, _ = hide(linked_table(200))
    imputer = make_imputer(likelihoods={"x": "normal"}, epochs=1, hidden_size=8, random_state=0).fit(holed)
    assert "x" not in imputer.bins_
    assert set(imputer.distribution(holed)["x"].parameters) == {"mean", "std"}
    assert "double" in imputer.bins_
    gone, usual = holed["x"].isna(), imputer.distribution(holed)["x"].parameters
    law = stats.norm(usual["mean"][gone], usual["std"][gone])
    for level in (0.05, 0.99):  # narrow ones must not change places, wide ones reach as far as they should
        for end, at in zip(imputer.interval(holed, level), (0.5 - 0.5 * level, 0.5 + 0.5 * level), strict=True):
            expected = np.clip(law.ppf(at), holed["x"].min(), holed["x"].max())
            np.testing.assert_allclose(end["x"][gone], expected, rtol=1e-9)


@pytest.mark.more
def test_columns_far_from_zero_are_learned():
    rng = np.random.default_rng(0)
    x = rng.normal(size=400)
    table = pd.DataFrame({"year": 1e9 + x, "y": x + 0.1 * rng.normal(size=400)})
    holed, hidden = hide(table)
    full = make_imputer(epochs=60, hidden_size=32, n_networks=1, random_state=0).fit_transform(holed)
    cells = hidden[:, 0] & ~hidden[:, 1]
    assert np.corrcoef(full["year"][cells] - 1e9, table["year"][cells] - 1e9)[0, 1] > 0.9


@pytest.mark.more
def test_a_small_table_of_noise_is_not_made_worse_than_the_mean():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(200, 4)), columns=list("abcd"))
    table["e"] = rng.choice(["u", "v"], 200, p=[0.7, 0.3])
    holed, hidden = hide(table)
    errors = imputation_error(
        table, make_imputer(epochs=40, hidden_size=32, random_state=0).fit_transform(holed), hidden
    )
    assert errors["normalized"].mean() < 1.05


def test_a_row_without_any_cell_is_filled(learned):
    imputer, _, holed, _ = learned
    empty = pd.DataFrame({name: pd.Series([None], dtype=holed[name].dtype) for name in holed})
    full = imputer.transform(empty)
    assert not full.isna().any(axis=None)
    assert not imputer.sample(empty, 1)[0].isna().any(axis=None)


def test_one_row_and_a_column_of_one_value():
    table = pd.DataFrame({"a": [1.0], "b": [2.0]})
    with pytest.warns(EvenlyWarning):
        assert make_imputer(epochs=1, random_state=0).fit_transform(table).equals(table)
