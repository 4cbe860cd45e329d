"""A small PyTorch Transformer on our prompts: `python examples/pytorch_model.py results/torch`, with PyTorch installed.

Its rows are read by `qstr_jax.load`, drawn by `qstr_jax.plot` and put beside all others by `qstr_jax.compare`.
"""

import sys

import torch

import qstr_jax
from qstr_jax import outside


class Prompts(torch.utils.data.IterableDataset):
    """Training batches without end: (prompts, labels, weights) as tensors."""

    def __init__(self, **arguments):
        self.arguments = arguments

    def __iter__(self):
        for batch in qstr_jax.batches(**self.arguments):
            yield tuple(torch.tensor(array) for array in batch)


class Encoder(torch.nn.Module):
    """A token embedding, one encoder layer, one number or C logits at each position."""

    def __init__(self, embedding_dim, num_outputs, width=64):
        super().__init__()
        self.embed = torch.nn.Linear(embedding_dim, width)
        self.layer = torch.nn.TransformerEncoderLayer(
            width, nhead=4, dim_feedforward=width, dropout=0, batch_first=True
        )
        self.read = torch.nn.Linear(width, num_outputs)

    def forward(self, z_BxNxE):
        y_BxNxC = self.read(self.layer(self.embed(z_BxNxE)))
        return y_BxNxC[..., 0] if y_BxNxC.shape[-1] == 1 else y_BxNxC


def errors(predictions, y_BxN, loss):
    """The error at each position, (B, N)."""
    if loss == 'cross_entropy':  # PyTorch wants classes in int64 and the logits as (B, C, N)
        return torch.nn.functional.cross_entropy(predictions.transpose(1, 2), y_BxN.long(), reduction='none')
    return (y_BxN - predictions) ** 2


def train(judge, task, batch_size=64, check_every=10, learning_rate=1e-3):
    """Trains a model on a task until its judge says that the lane is over, and returns the model."""
    torch.manual_seed(judge.seeds['seed'])
    torch.set_num_threads(1)
    model = Encoder(judge.prompts.shape[-1], judge.task.num_outputs)
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate)
    # batch_size=None: they are batches already.
    prompts = Prompts(task=task, seq_len=judge.task.seq_len, batch_size=batch_size, **judge.seeds)
    loader = torch.utils.data.DataLoader(prompts, batch_size=None)
    for step, (z_BxNxE, y_BxN, weights_BxN) in enumerate(loader, start=1):
        loss = (weights_BxN * errors(model(z_BxNxE), y_BxN, judge.task.loss)).sum() / weights_BxN.sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % check_every == 0:
            with torch.no_grad():
                predictions = model(torch.tensor(judge.prompts)).numpy()
            if judge.check(predictions, step * batch_size):
                return model


def main(workdir, task='qstr', seq_lens=(4, 8), num_seeds=3, max_samples=64_000, test_samples=1000, **judged):
    """One lane for each N and seed, judged as `qstr_jax.judge` says; rows into a results directory."""
    for seq_len in seq_lens:
        for seed in range(num_seeds):
            judge = qstr_jax.judge(task, seq_len, seed, max_samples=max_samples, test_samples=test_samples, **judged)
            model = train(judge, task)
            count = sum(one.numel() for one in model.parameters())
            measures = {'num_parameters': count, 'batch_size': 64, 'check_every': 10, 'learning_rate': 1e-3}
            outside.write_rows(workdir, 'torch_encoder', [judge], settings={'width': 64}, **measures)
            print(f'N = {seq_len}, seed {seed}: {judge.outcome} after {judge.history[-1][0]:,} prompts')


if __name__ == '__main__':
    if len(sys.argv) != 2:
        sys.exit('error: give a results directory: python examples/pytorch_model.py results/torch')
    main(sys.argv[1])
