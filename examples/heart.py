"""What both VAEs share: the heart table with a fifth of its cells hidden, and what one writes without Evenly.

By hand, every number is standardized and has two outputs, a mean and a raw deviation; every class has a logit.
"""

import numpy as np
import pandas as pd

import evenly


class Standardized:
    """The cells and the best guesses of heads that are written by hand; their densities depend on the library."""

    def __init__(self, table):
        self.mean, self.std = table.mean(numeric_only=True), table.std(numeric_only=True)
        self.classes = {name: sorted(table[name].dropna().unique()) for name in table if name not in self.mean}
        ends = np.cumsum([0, *(len(self.classes.get(name, "ab")) for name in table)])
        self.slices = dict(zip(table, map(slice, ends[:-1], ends[1:]), strict=True))
        self.n_outputs, self.marginal = int(ends[-1]), np.zeros(ends[-1])

    def encode(self, table):
        """Return standardized numbers and codes of classes, 0 where missing; and which are there."""
        codes = {name: pd.Categorical(table[name], known).codes for name, known in self.classes.items()}
        values = ((table[self.mean.index] - self.mean) / self.std).assign(**codes)[[*table]]
        return values.where(table.notna(), 0.0).to_numpy(np.float32), table.notna().to_numpy()

    def predict(self, raw):
        """Return means of numbers and most probable classes."""
        own = {name: np.asarray(raw[:, at]) for name, at in self.slices.items()}
        numbers = {name: own[name][:, 0] * self.std[name] + self.mean[name] for name in self.mean.index}
        return pd.DataFrame({**numbers, **{k: np.array(known)[own[k].argmax(1)] for k, known in self.classes.items()}})


def compare(by_hand, train, epochs, method, seed=0):
    """Print the errors on hidden cells of a VAE with likelihood heads, and of one with heads written by hand.

    Parameters
    ----------
    by_hand : class
        The heads written by hand, made from a table.
    train : function
        Of heads, a table, inputs and epochs: trains a VAE, and returns its best guess of every cell.
    method : str
        The scaling method of the likelihood heads.
    """
    table = evenly.load_heart()
    hidden = (np.random.default_rng(seed).random(table.shape) < 0.2) & table.notna().to_numpy()
    seen = table.mask(hidden)
    inputs = pd.get_dummies(seen, dtype=float)  # the same for both: standardized, 0 where missing
    inputs = ((inputs - inputs.mean()) / inputs.std()).fillna(0.0).to_numpy(np.float32)
    found = {}
    for name, heads in {"heads": evenly.LipschitzScaler(method).fit(seen).heads(), "by hand": by_hand(seen)}.items():
        filled = train(heads, seen, inputs, epochs)
        errors = evenly.imputation_error(table, filled, hidden).set_index("column")
        found |= {"kind": errors["kind"], name: errors["error"], "mean or mode": errors["baseline"]}
    print(pd.DataFrame(found)[["kind", "heads", "by hand", "mean or mode"]].round(3).to_string())
    relative = {name: round(float((found[name] / found["mean or mode"]).mean()), 3) for name in ("heads", "by hand")}
    print("mean error, relative to that of mean or mode:", relative)
