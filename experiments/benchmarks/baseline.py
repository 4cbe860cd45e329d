"""The online protocol in PyTorch, as a strong user would write it: what `qstr_jax` is timed against and checked with.

Independent of `qstr_jax`: tasks, models, data, training and test are written here from the paper (Section 6). Weights
are initialised as the published code has them, so a cell needs about as many samples here as there.
"""

import math
import time

import torch
from torch import nn
from torch.nn import functional

# Test prompts per forward pass: what a CPU's caches like; a GPU takes them all.
CPU_CHUNK = 500


class Task:
    """Prompts of qSTR with a linear link, y_i = (1/√q) Σ_l ⟨u, x_{t_il}⟩, drawn on the device."""

    def __init__(self, protocol, name, direction_D, omega_NxE):
        self.protocol, self.name = protocol, name
        self.direction_D, self.omega_NxE = direction_D, omega_NxE

    def draw(self, num_prompts, generator):
        """Tokens x (B, N, d) and indices t (B, N, q)."""
        protocol, device = self.protocol, self.omega_NxE.device
        shape = num_prompts, protocol.seq_len, protocol.token_dim
        x_BxNxD = torch.randn(shape, generator=generator, device=device)
        rows = 1 if self.name == 'simple_qstr' else protocol.seq_len
        shape = num_prompts, rows, protocol.sparsity
        t_BxRxQ = torch.randint(protocol.seq_len, shape, generator=generator, device=device)
        return x_BxNxD, t_BxRxQ.expand(-1, protocol.seq_len, -1)

    def encode(self, x_BxNxD, t_BxNxQ):
        """Embedded tokens z (B, N, D_e) and labels y (B, N)."""
        batch = x_BxNxD.shape[0]
        # ⟨u, x_j⟩ of all tokens first: then retrieving moves scalars, not tokens.
        value_BxN = x_BxNxD @ self.direction_D
        t_BxNQ = t_BxNxQ.flatten(1)
        y_BxN = value_BxN.gather(1, t_BxNQ).view(t_BxNxQ.shape).sum(-1) / math.sqrt(self.protocol.sparsity)
        retrieved_BxNxF = self.omega_NxE[t_BxNxQ].flatten(2)
        z_BxNxE = torch.cat([x_BxNxD, self.omega_NxE.expand(batch, -1, -1), retrieved_BxNxF], dim=-1)
        return z_BxNxE, y_BxN


class Transformer(nn.Module):
    """One layer of attention with heads of the whole embedding dimension, then one ReLU layer."""

    def __init__(self, protocol):
        super().__init__()
        width, self.num_heads = protocol.embedding_dim, protocol.sparsity
        self.in_projection = nn.Linear(width, 3 * self.num_heads * width)
        self.out_projection = nn.Linear(self.num_heads * width, width)
        self.hidden = nn.Linear(width, protocol.mlp_width)
        self.out = nn.Linear(protocol.mlp_width, 1)
        limit = math.sqrt(6 / (4 * width))
        nn.init.uniform_(self.in_projection.weight, -limit, limit)
        nn.init.zeros_(self.in_projection.bias)
        nn.init.zeros_(self.out_projection.bias)

    def forward(self, z_BxNxE):
        """Predictions (B, N)."""
        batch, seq_len, width = z_BxNxE.shape
        projected = self.in_projection(z_BxNxE).view(batch, seq_len, 3, self.num_heads, width)
        query_BxHxNxE, key_BxHxNxE, value_BxHxNxE = projected.permute(2, 0, 3, 1, 4)
        heads_BxHxNxE = functional.scaled_dot_product_attention(query_BxHxNxE, key_BxHxNxE, value_BxHxNxE)
        heads_BxNxF = heads_BxHxNxE.transpose(1, 2).reshape(batch, seq_len, self.num_heads * width)
        hidden_BxNxM = functional.relu(self.hidden(self.out_projection(heads_BxNxF)))
        return self.out(hidden_BxNxM).squeeze(-1)


class Recurrent(nn.Module):
    """Bidirectional GRU with a linear read-out."""

    def __init__(self, protocol):
        super().__init__()
        width = protocol.rnn_width or 500 * protocol.sparsity
        self.cell = nn.GRU(protocol.embedding_dim, width, bidirectional=True, batch_first=True)
        self.out = nn.Linear(2 * width, 1)

    def forward(self, z_BxNxE):
        """Predictions (B, N)."""
        return self.out(self.cell(z_BxNxE)[0]).squeeze(-1)


class Feedforward(nn.Module):
    """Two hidden ReLU layers on the flattened prompt."""

    def __init__(self, protocol):
        super().__init__()
        published = protocol.seq_len * protocol.token_dim * protocol.sparsity, 1000
        first, second = protocol.ffn_widths or published
        self.hidden_0 = nn.Linear(protocol.seq_len * protocol.embedding_dim, first)
        self.hidden_1 = nn.Linear(first, second)
        self.out = nn.Linear(second, protocol.seq_len)

    def forward(self, z_BxNxE):
        """Predictions (B, N)."""
        hidden_BxM = functional.relu(self.hidden_0(z_BxNxE.flatten(1)))
        return self.out(functional.relu(self.hidden_1(hidden_BxM)))


BUILDERS = {'transformer': Transformer, 'rnn': Recurrent, 'ffn': Feedforward}


class Training:
    """One seed of a `ours.Protocol`: its model, its data, and the steps and tests that a run is made of."""

    def __init__(self, protocol, seed=0, device='cpu'):
        self.protocol = protocol
        torch.manual_seed(seed)
        self.generator = torch.Generator(device).manual_seed(seed)
        self.direction_D = nn.init.normal_(torch.empty(protocol.token_dim))
        self.direction_D = (self.direction_D / self.direction_D.norm()).to(device)
        signs_NxE = torch.randint(2, (protocol.seq_len, protocol.encoding_dim)) * 2.0 - 1
        self.omega_NxE = (signs_NxE / math.sqrt(protocol.encoding_dim)).to(device)
        self.task = Task(protocol, protocol.task, self.direction_D, self.omega_NxE)
        self.model = BUILDERS[protocol.model](protocol).to(device)
        # `fused` is one kernel for all parameters, on CPUs too.
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), protocol.learning_rate, weight_decay=protocol.weight_decay, fused=True
        )
        test_task = Task(protocol, protocol.test_task, self.direction_D, self.omega_NxE)
        # Encoded once: the test set does not change.
        self.test_z_SxNxE, self.test_y_SxN = test_task.encode(*test_task.draw(protocol.test_samples, self.generator))
        self.chunk = CPU_CHUNK if device == 'cpu' else protocol.test_samples

    def step(self):
        """One AdamW step on fresh prompts; its loss, on the device."""
        return self.step_on(*self.task.encode(*self.task.draw(self.protocol.batch_size, self.generator)))

    def step_on(self, z_BxNxE, y_BxN):
        """One AdamW step on given prompts; its loss, taken before, on the device."""
        loss = functional.mse_loss(self.model(z_BxNxE), y_BxN)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def steps(self, count):
        """`count` steps, done when it returns."""
        for _ in range(count):
            self.step()
        if self.omega_NxE.is_cuda:
            torch.cuda.synchronize()

    def tests(self, count):
        """`count` tests."""
        for _ in range(count):
            self.test()

    @torch.inference_mode()
    def test(self):
        """Test loss, on the host."""
        chunks = zip(self.test_z_SxNxE.split(self.chunk), self.test_y_SxN.split(self.chunk), strict=True)
        total = sum(functional.mse_loss(self.model(z), y, reduction='sum') for z, y in chunks)
        return float(total) / self.test_y_SxN.numel()

    def run(self):
        """Trains to the threshold: (samples, whether it was reached, seconds)."""
        protocol, start = self.protocol, time.perf_counter()
        samples, reached = 0, False
        while not reached and samples < protocol.max_samples:
            self.steps(protocol.check_every)
            samples += protocol.check_every * protocol.batch_size
            reached = self.test() < protocol.threshold
        return samples, reached, time.perf_counter() - start
