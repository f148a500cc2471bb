"""Impute a wide table: half of the pixels of handwritten digits (scikit-learn).

Each of 600 rows is a picture of 8 x 8 pixels, and each column is a pixel from 0 to 16. From top to bottom: what is
left, what was imputed, and the truth.
"""

import sys

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_digits

import evenly

truth = load_digits().data[:600]
hidden = np.random.default_rng(0).random(truth.shape) < 0.5
table = np.where(hidden, np.nan, truth)

blank = np.nanmax(table, axis=0) == 0.0  # pixels that are always white
kinds = {f"x{j}": "ignore" if blank[j] else "real" for j in range(64)}
training = evenly.Training(epochs=80, n_networks=1)
imputer = evenly.Imputer(kinds=kinds, training=training, random_state=0)
full = imputer.fit_transform(table)
error = np.sqrt(np.nanmean((full - truth)[hidden] ** 2))
mean = np.sqrt(np.mean((np.nanmean(table, 0) - truth)[hidden] ** 2))
print(f"root mean square error {error:.2f} of 16; {mean:.2f} with the mean of each pixel")

axes = Figure(figsize=(9, 3.2), layout="constrained").subplots(3, 12)
for row, pictures in zip(axes, (table, full, truth), strict=True):
    for ax, pixels in zip(row, pictures, strict=False):
        ax.imshow(pixels.reshape(8, 8), cmap="gray_r", vmin=0, vmax=16)
        ax.axis("off")
axes[0, 0].figure.savefig(sys.argv[1] if sys.argv[1:] else "digits.png")
