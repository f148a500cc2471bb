"""Balancing rules: the weight of each column's gradient, chosen anew at every step of training.

A rule sees the columns' losses and, if it asks for them, the inner products of their gradients at the output that all
columns share. It returns one weight a column, for what is passed on to the rest of the network. The predictive
distributions stay what they are: weights change what is learned first, not what a prediction means.

A rule is one subclass, a frozen dataclass with a single setting, which registers itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from evenly.models.aggregation import TINY, cagrad, imtl_g, mgda, nash, pcgrad
from evenly.models.layout import Layout

Memory = dict[str, Any]
"""What a rule remembers from step to step, by name: arrays."""
LEAST_PROGRESS = 1e-3
"""The progress of a column is cut to [0.001, 0.999]: its logarithm is then finite."""
MARGIN = 1.0
"""Losses, which may be negative, are shifted to at least this."""


class Signals(NamedTuple):
    """What a rule sees at a step."""

    losses: Any
    """The mean negative log-likelihood of each column."""
    gram: Any
    """The inner products of the columns' gradients at the shared output; zeros for a rule that does not ask."""
    active: Any
    """The columns with an observed cell in the batch, a finite loss and a finite gradient."""
    key: Any
    """Raw data of a random key."""
    smoothness: Any = None
    """The columns' smoothness at the model's parameters, for a rule that measures it."""


class Rule(ABC):
    """How the columns' gradients are weighted."""

    name: ClassVar[str]
    reads_gradients: ClassVar[bool] = False
    """Whether it needs the inner products of gradients."""
    moves_scales: ClassVar[bool] = False
    """Whether it measures smoothness at the model's parameters and moves scales; see `evenly.models.online`."""
    weighs_heads: ClassVar[bool] = True
    """Whether each column's own parameters get its weighted gradient, as of a weighted loss, or the plain one."""
    candidates: ClassVar[tuple[float, ...]] = ()
    """Values of its setting to choose from on validation cells."""
    limits: ClassVar[tuple[float, float]] = (0.0, 10.0)
    """The range of its setting."""

    def __init_subclass__(cls, name: str = "", **settings: Any) -> None:
        """Register a subclass under the name that it is given."""
        super().__init_subclass__(**settings)
        if name:
            cls.name = name
            RULES[name] = cls

    def start(self, n_columns: int, dtype: Any) -> Memory:
        """Return the rule's memory before the first step."""
        return {}

    def start_in(self, layout: Layout, dtype: Any) -> Memory:
        """Return the rule's memory before the first step of a training with that layout."""
        return self.start(layout.sizes.columns, dtype)

    @abstractmethod
    def weigh(self, memory: Memory, signals: Signals) -> tuple[Any, Memory]:
        """Return the columns' weights and the memory for the next step."""


RULES: dict[str, type[Rule]] = {}
"""The rules by name."""


def balance(rule: Rule, memory: Memory, signals: Signals) -> tuple[jax.Array, Memory]:
    """Return finite weights of the columns, and the rule's memory for the next step.

    Columns that are not active get the weight 0, and change nothing in the memory or in the weights of the others. The
    weights are scaled so that the combined gradient is as long as the plain sum of gradients, where these are known,
    and else to a mean of 1: a rule changes directions, and leaves the learning rate to the schedule. If a rule finds no
    finite weights, all are 1 and its memory stays.

    Examples
    --------
    >>> signals = Signals(jnp.ones(2), jnp.diag(jnp.array([1.0, 4.0])), jnp.ones(2, bool), jnp.zeros(2, jnp.uint32))
    >>> weights, _ = balance(RULES["imtl"](), {}, signals)  # weights that make both gradients equally long
    >>> (weights / weights[1]).round(2).tolist()
    [2.0, 1.0]
    """
    active = signals.active & jnp.isfinite(signals.losses) & jnp.isfinite(jnp.diagonal(signals.gram))
    gram = jnp.where(jnp.outer(active, active), signals.gram, 0.0)
    cleaned = signals._replace(losses=jnp.where(active, signals.losses, 0.0), gram=gram, active=active)
    weights, changed = rule.weigh(memory, cleaned)
    weights = jnp.where(active, weights, 0.0)
    fine = jnp.isfinite(weights).all() & (jnp.abs(weights).sum() > 0.0)
    for one in jax.tree.leaves(changed):
        fine &= jnp.isfinite(one).all()
    weights = jnp.where(fine, weights, active)
    memory = jax.tree.map(lambda new, old: jnp.where(fine, new, old), changed, memory)
    return weights * _scale(weights, cleaned, reads_gradients=rule.reads_gradients), memory


def _scale(weights: jax.Array, signals: Signals, *, reads_gradients: bool) -> jax.Array:
    even = signals.active.astype(weights.dtype)
    if not reads_gradients:
        return jnp.asarray(even.sum() / jnp.maximum(jnp.abs(weights).sum(), TINY))
    plain, combined = (jnp.sqrt(jnp.maximum(one @ signals.gram @ one, 0.0)) for one in (even, weights))
    # Gradients that cancel have no direction to keep the length of.
    return jnp.where(combined > TINY, plain / jnp.maximum(combined, TINY), 1.0)


# --- fixed weights ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Unbalanced(Rule, name="none"):
    """The plain sum of log-likelihoods."""

    def weigh(self, memory: Memory, signals: Signals) -> tuple[Any, Memory]:
        return jnp.ones_like(signals.losses), memory


@dataclass(frozen=True)
class BySmoothness(Rule, name="lip"):
    """One over the smoothness of each column's log-likelihood at its marginal.

    These weights never change, so that they are part of the objective, and nothing is left to weigh at a step.
    """

    def weigh(self, memory: Memory, signals: Signals) -> tuple[Any, Memory]:
        return jnp.ones_like(signals.losses), memory


# --- rules that look at losses ----------------------------------------------------------------------------------------


def _moving(memory: Memory, name: str, new: Any, signals: Signals, decay: float) -> Any:
    """Return a moving average of what active columns have; the first value starts it."""
    moved = jnp.where(memory["seen"], decay * memory[name] + (1.0 - decay) * new, new)
    return jnp.where(signals.active, moved, memory[name])


def _first(memory: Memory, name: str, new: Any, signals: Signals) -> Any:
    """Return the first value that each column had."""
    return jnp.where(signals.active & ~memory["seen"], new, memory[name])


@dataclass(frozen=True)
class Uncertainty(Rule, name="uncertainty"):
    """Homoscedastic uncertainty (Kendall et al. 2018): the weight exp(-s) minimizes exp(-s) loss + s.

    A negative log-density would send s to minus infinity, so losses are shifted to at least 1 by their smallest value
    so far. Then s approaches log(loss).
    """

    rate: float = 0.025
    """The learning rate of s."""
    candidates: ClassVar = (0.0025, 0.025, 0.25)

    def start(self, n_columns: int, dtype: Any) -> Memory:
        return {"least": np.full(n_columns, np.finfo(dtype).max, dtype), "s": np.zeros(n_columns, dtype)}

    def weigh(self, memory: Memory, signals: Signals) -> tuple[Any, Memory]:
        least = jnp.where(signals.active, jnp.minimum(memory["least"], signals.losses), memory["least"])
        shifted = jnp.where(signals.active, signals.losses - least + MARGIN, MARGIN)
        slope = jnp.clip(1.0 - jnp.exp(-memory["s"]) * shifted, -1.0, 1.0)
        s = memory["s"] - self.rate * jnp.where(signals.active, slope, 0.0)
        return jnp.exp(-s), {"least": least, "s": s}


@dataclass(frozen=True)
class Priority(Rule, name="priority"):
    """Dynamic task prioritization (Guo et al. 2018): the less a column has improved, the larger its weight.

    The progress of a column is the share of its initial perplexity that is gone, 1 - exp(loss - first loss), which
    needs neither a unit nor a positive loss. The weight is that of the focal loss, -(1 - progress)^focus log(progress).
    """

    focus: float = 1.0
    candidates: ClassVar = (0.5, 1.0, 2.0)
    DECAY: ClassVar[float] = 0.99
    """Of the moving average of losses."""

    def start(self, n_columns: int, dtype: Any) -> Memory:
        return {"seen": np.zeros(n_columns, bool), **{name: np.zeros(n_columns, dtype) for name in ("first", "loss")}}

    def weigh(self, memory: Memory, signals: Signals) -> tuple[Any, Memory]:
        first = _first(memory, "first", signals.losses, signals)
        loss = _moving(memory, "loss", signals.losses, signals, self.DECAY)
        progress = jnp.clip(-jnp.expm1(jnp.minimum(loss - first, 0.0)), LEAST_PROGRESS, 1.0 - LEAST_PROGRESS)
        weights = -((1.0 - progress) ** self.focus) * jnp.log(progress)
        return weights, {"seen": memory["seen"] | signals.active, "first": first, "loss": loss}


@dataclass(frozen=True)
class Famo(Rule, name="famo"):
    """Fast adaptive multitask optimization (Liu et al. 2023): logits move towards columns that improve slowest.

    It takes logarithms of losses, which are therefore shifted to at least 1 by their smallest value so far. How much a
    column improved is seen in the next batch, where the original looks at the same batch again, which would cost
    another pass.
    """

    rate: float = 0.025
    """The learning rate of the logits."""
    candidates: ClassVar = (0.0025, 0.025, 0.25)
    FORGETTING: ClassVar[float] = 1e-3
    """The decay of the logits."""

    def start(self, n_columns: int, dtype: Any) -> Memory:
        largest = np.full(n_columns, np.finfo(dtype).max, dtype)
        return {"seen": np.zeros(n_columns, bool), "least": largest} | {
            name: np.zeros(n_columns, dtype) for name in ("logits", "loss")
        }

    def weigh(self, memory: Memory, signals: Signals) -> tuple[Any, Memory]:
        active = signals.active
        least = jnp.where(active, jnp.minimum(memory["least"], signals.losses), memory["least"])
        now = jnp.where(active, signals.losses - least + MARGIN, MARGIN)
        before = jnp.where(active & memory["seen"], memory["loss"] - least + MARGIN, now)
        shares = _shares(memory["logits"], active)
        gained = jnp.log(before) - jnp.log(now)
        slope = shares * (gained - (shares * gained).sum())  # of the shares' logarithms: slow columns gain weight
        logits = (1.0 - self.rate * self.FORGETTING) * memory["logits"] - self.rate * slope
        loss = jnp.where(active, signals.losses, memory["loss"])
        memory = {"seen": memory["seen"] | active, "least": least, "logits": logits, "loss": loss}
        return _shares(logits, active) / now, memory


def _shares(logits: jax.Array, active: jax.Array) -> jax.Array:
    return jax.nn.softmax(jnp.where(active, logits, -jnp.inf))


# --- rules that look at gradients -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class GradNorm(Rule, name="gradnorm"):
    """GradNorm (Chen et al. 2018): gradients of equal length, and longer ones for columns that learn more slowly.

    The original compares losses with their first values, which fails where log-densities are negative. Here a column's
    training rate is the ratio of its gradient's norm to its first one.
    """

    asymmetry: float = 1.0
    """How much longer the gradients of slow columns are to be."""
    candidates: ClassVar = (0.0, 0.5, 1.5)
    reads_gradients: ClassVar = True
    DECAY: ClassVar[float] = 0.9
    RATE: ClassVar[float] = 0.025

    def start(self, n_columns: int, dtype: Any) -> Memory:
        zeros = {name: np.zeros(n_columns, dtype) for name in ("first", "norm", "logits")}
        return {"seen": np.zeros(n_columns, bool), **zeros}

    def weigh(self, memory: Memory, signals: Signals) -> tuple[Any, Memory]:
        active, n = signals.active, jnp.maximum(signals.active.sum(), 1)
        norms = jnp.sqrt(jnp.maximum(jnp.diagonal(signals.gram), 0.0)) + TINY
        first, norm = _first(memory, "first", norms, signals), _moving(memory, "norm", norms, signals, self.DECAY)
        ratio = jnp.where(active, norm / jnp.maximum(first, TINY), 0.0)
        slowness = jnp.where(active, ratio / jnp.maximum(ratio.sum() / n, TINY), 1.0)
        weighted = jnp.exp(memory["logits"]) * norm
        wanted = jnp.where(active, weighted, 0.0).sum() / n * slowness**self.asymmetry
        away = jnp.log(jnp.maximum(weighted, TINY)) - jnp.log(jnp.maximum(wanted, TINY))
        logits = memory["logits"] - self.RATE * jnp.where(active, jnp.clip(away, -1.0, 1.0), 0.0)
        memory = {"seen": memory["seen"] | active, "first": first, "norm": norm, "logits": logits}
        return jnp.exp(logits), memory


@dataclass(frozen=True)
class Mgda(Rule, name="mgda"):
    """Multiple-gradient descent (Sener and Koltun 2018): the shortest convex combination of the gradients."""

    reads_gradients: ClassVar = True
    weighs_heads: ClassVar = False

    def weigh(self, memory: Memory, signals: Signals) -> tuple[Any, Memory]:
        return mgda(signals.gram, signals.active), memory


@dataclass(frozen=True)
class PcGrad(Rule, name="pcgrad"):
    """Projecting conflicting gradients (Yu et al. 2020), in random order."""

    reads_gradients: ClassVar = True
    weighs_heads: ClassVar = False

    def weigh(self, memory: Memory, signals: Signals) -> tuple[Any, Memory]:
        n = len(signals.losses)
        keys = jax.random.split(jax.random.wrap_key_data(signals.key), n)
        return pcgrad(signals.gram, jax.vmap(lambda key: jax.random.permutation(key, n))(keys)), memory


@dataclass(frozen=True)
class CaGrad(Rule, name="cagrad"):
    """Conflict-averse gradients (Liu et al. 2021): near the mean gradient, what helps the worst column most."""

    c: float = 0.5
    candidates: ClassVar = (0.2, 0.5, 0.8)
    reads_gradients: ClassVar = True
    weighs_heads: ClassVar = False

    def weigh(self, memory: Memory, signals: Signals) -> tuple[Any, Memory]:
        return cagrad(signals.gram, signals.active, self.c), memory


@dataclass(frozen=True)
class Imtl(Rule, name="imtl"):
    """Impartial learning (Liu et al. 2021, IMTL-G): the combined gradient has equal projections on all."""

    reads_gradients: ClassVar = True
    weighs_heads: ClassVar = False

    def weigh(self, memory: Memory, signals: Signals) -> tuple[Any, Memory]:
        return imtl_g(signals.gram), memory


@dataclass(frozen=True)
class Nash(Rule, name="nash"):
    """A bargain between the columns (Navon et al. 2022): the Nash solution."""

    reads_gradients: ClassVar = True

    def weigh(self, memory: Memory, signals: Signals) -> tuple[Any, Memory]:
        return nash(signals.gram, signals.active), memory
