"""Give a PyTorch network the right output for every column: likelihood heads.

The network is an autoencoder of mixed columns with missing cells. The heads say how many outputs it needs, score them
against the table, and turn them into predictions in the table's units. The picture shows how well it learned ages.
"""

import sys

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import nn

import evenly

table = evenly.load_heart()
heads = evenly.LipschitzScaler("lip-none").fit(table).heads()
cells, mask = map(torch.as_tensor, heads.encode(table))
inputs = torch.where(mask, (cells - cells.mean(0)) / cells.std(0), 0.0).float()

torch.manual_seed(0)
network = nn.Sequential(nn.Linear(inputs.shape[1], 8), nn.Tanh(), nn.Linear(8, heads.n_outputs))
network[-1].bias.data = torch.as_tensor(heads.marginal, dtype=torch.float32)
adam = torch.optim.Adam(network.parameters(), lr=1e-2)
for epoch in range(400):
    loss = -heads.log_prob(network(inputs), cells, mask).sum() / len(table)
    adam.zero_grad()
    loss.backward()
    adam.step()
    if epoch % 100 == 99:
        print(f"epoch {epoch + 1}: {-loss.item():.2f} nats a row")

predicted = heads.predict(network(inputs).detach())
print("thal predicted correctly:", np.mean(predicted["thal"] == table["thal"]).round(2))
ax = Figure(figsize=(4, 4), layout="constrained").subplots()
ax.plot(table["age"], predicted["age"], ".")
ax.plot([30, 77], [30, 77], color="0.6")
ax.set(xlabel="age, years", ylabel="predicted age")
ax.figure.savefig(sys.argv[1] if sys.argv[1:] else "ages.png")
