#!/usr/bin/env python3
"""The losses of examples/custom_model.cpp, computed by PyTorch alone.

    python3 tests/golden/make_custom_model.py TEXT UPDATES > tests/golden/custom_model.json

One process, one batch of 16 rows an update, torch.optim.AdamW: what any number of ranks, any ZeRO
stage and any accumulation must give. Needs PyTorch only.
"""
import json
import sys

import torch
from torch import nn
from torch.nn import functional as F

BYTES, CHANNELS, KERNEL, ROW_BYTES, STRIDE, ROWS = 256, 32, 3, 64, 37, 16
LEARNING_RATE, WEIGHT_DECAY, MAX_NORM = 3e-3, 0.01, 1.0


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(BYTES, CHANNELS)
        self.convs = nn.ModuleList(nn.Conv1d(CHANNELS, CHANNELS, KERNEL, dilation=d) for d in (1, 3, 9))
        self.linear = nn.Linear(CHANNELS, BYTES)

    def forward(self, bytes_bt):
        x = self.table(bytes_bt).transpose(1, 2)
        for conv in self.convs:
            x = x + F.silu(conv(F.pad(x, (conv.dilation[0] * (KERNEL - 1), 0))))
        return self.linear(x.transpose(1, 2))


def set_first_values(network):
    count = 0
    with torch.no_grad():
        for parameter in network.parameters():
            index = torch.arange(count, count + parameter.numel(), dtype=torch.float64)
            parameter.copy_((torch.sin(index * index + 1) * 0.1).view_as(parameter))
            count += parameter.numel()


def main(text_file, updates):
    data = torch.tensor(list(open(text_file, "rb").read()))
    starts = len(data) - ROW_BYTES
    network = Network()
    set_first_values(network)
    biases = [p for n, p in network.named_parameters() if n.endswith("bias")]
    others = [p for n, p in network.named_parameters() if not n.endswith("bias")]
    optimizer = torch.optim.AdamW(
        [{"params": others}, {"params": biases, "weight_decay": 0.0}],
        lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    losses, norms = [], []
    for update in range(updates):
        rows = [(update * ROWS + r) * STRIDE % starts for r in range(ROWS)]
        inputs = torch.stack([data[s:s + ROW_BYTES] for s in rows])
        targets = torch.stack([data[s + 1:s + 1 + ROW_BYTES] for s in rows])
        optimizer.zero_grad()
        loss = F.cross_entropy(network(inputs).reshape(-1, BYTES), targets.reshape(-1))
        loss.backward()
        norms.append(float(nn.utils.clip_grad_norm_(network.parameters(), MAX_NORM)))
        optimizer.step()
        losses.append(loss.item())
    json.dump({"losses": losses, "grad_norms": norms, "torch": torch.__version__}, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
