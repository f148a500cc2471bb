"""What Evenly needs of scikit-learn beyond its estimator classes, in one place.

scikit-learn is imported when one of these functions is called: commands that need none of it start without it.
"""

from __future__ import annotations

from typing import Any


def output_container(estimator: Any) -> str:
    """Return what `set_output`, or scikit-learn's configuration, asks `transform` for: "default", "pandas" or "polars".

    Examples
    --------
    >>> from sklearn.preprocessing import StandardScaler
    >>> output_container(StandardScaler()), output_container(StandardScaler().set_output(transform="polars"))
    ('default', 'polars')
    """
    from sklearn.utils._set_output import _get_output_config  # private: there is no public way to learn it

    return str(_get_output_config("transform", estimator)["dense"])


def check_input_names(estimator: Any, names: Any = None) -> Any:
    """Return the names of the fitted columns; refuse given ones that are others.

    Examples
    --------
    >>> from sklearn.preprocessing import StandardScaler
    >>> check_input_names(StandardScaler().fit([[1.0, 2.0]])).tolist()
    ['x0', 'x1']
    """
    from sklearn.base import OneToOneFeatureMixin

    return OneToOneFeatureMixin.get_feature_names_out(estimator, names)


def table_tags(tags: Any) -> Any:
    """Set the tags of a transformer that takes tables as people have them: texts, classes, missing cells."""
    tags.input_tags.allow_nan = True
    tags.input_tags.string = True
    tags.input_tags.categorical = True
    tags.transformer_tags.preserves_dtype = []
    return tags


def estimator_html(estimator: Any) -> str:
    """Return the parameters of an estimator as scikit-learn shows them in a notebook."""
    from sklearn.utils import estimator_html_repr

    return str(estimator_html_repr(estimator))


def boost(features: Any, wanted: Any, n_rounds: int, *, classes: bool) -> Any:
    """Return scikit-learn's gradient-boosted trees of a number, or of classes by their codes from 0."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    kind = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    return kind(max_iter=n_rounds, l2_regularization=1.0, early_stopping=False, random_state=0).fit(features, wanted)


def boosted_arrays(fitted: Any) -> tuple[Any, list[dict[str, Any]]]:
    """Return what the outputs of gradient-boosted trees start from, and the nodes of each tree, round by round.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(0.0, 1.0, 100)[:, None]
    >>> base, trees = boosted_arrays(boost(x, x[:, 0] > 0.5, 3, classes=True))
    >>> base.shape, len(trees), trees[0]["is_leaf"].tolist()
    ((1,), 3, [0, 1, 1])
    """
    nodes = [one.nodes for of_round in fitted._predictors for one in of_round]  # private: trees have no public form
    return fitted._baseline_prediction.ravel(), [{name: one[name] for name in one.dtype.names} for one in nodes]
