"""A large matrix product in PyTorch, which measures the machine's limit. Units are 10^9 floating-point operations."""
import torch
import torch.nn.functional as F


def product(s, how):
    a, b = torch.randn(s["m"], s["k"]), torch.randn(s["n"], s["k"])

    @torch.inference_mode()
    def run():
        for _ in range(s["repeats"]):
            F.linear(a, b)
        return 2e-9 * s["m"] * s["n"] * s["k"] * s["repeats"]

    return run
