"""Networks of many models, applied and trained at once with stacked parameters, (models, parameters)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
ADAM: dict[str, Any] = {"betas": (0.5, 0.999), "fused": True, "capturable": DEVICE.type == "cuda"}


class Networks:
    """Stacked networks of many models, with all parameters in one leaf, (models, parameters)."""

    def __init__(self, modules: dict[str, Callable[[], nn.Module]], n_models: int) -> None:
        made = [{name: make() for name, make in modules.items()} for _ in range(n_models)]
        self.modules = {name: module.to(DEVICE) for name, module in made[0].items()}
        self.slots = [(key, name, p.shape) for key, m in self.modules.items() for name, p in m.named_parameters()]
        self.sizes = [int(np.prod(shape)) for *_, shape in self.slots]
        rows = [torch.cat([p.detach().cpu().reshape(-1) for m in own.values() for p in m.parameters()]) for own in made]
        self.flat = torch.stack(rows).to(DEVICE).requires_grad_()

    def size(self, key: str) -> int:
        """Return the number of parameters of a network."""
        return sum(size for size, (own, *_) in zip(self.sizes, self.slots, strict=True) if own == key)

    def split(self, flat: Tensor) -> dict[str, dict[str, Tensor]]:
        """Return the parameters of each network by name."""
        named: dict[str, dict[str, Tensor]] = defaultdict(dict)
        for (key, name, shape), part in zip(self.slots, flat.split(self.sizes, dim=1), strict=True):
            named[key][name] = part.reshape(-1, *shape)
        return named

    def __call__(self, key: str, named: dict[str, dict[str, Tensor]], *inputs: Tensor) -> Any:
        """Apply one network of each model to that model's inputs."""
        module = self.modules[key]
        return vmap(lambda own, *given: functional_call(module, own, given))(named[key], *inputs)


def clipped(gradient: Tensor, size: int, largest: float = 100.0) -> Tensor:
    """Clip the norm of the first `size` entries of each model's gradient."""
    norm = gradient[:, :size].norm(dim=1, keepdim=True)
    factor = (largest / (norm + 1e-6)).clamp(max=1.0)
    return torch.cat([gradient[:, :size] * factor, gradient[:, size:]], dim=1)


def entropy(logits: Tensor, target: int) -> Tensor:
    """Return the cross-entropy of each person in each model, for a target class common to all."""
    return -logits.log_softmax(dim=-1)[..., target]
