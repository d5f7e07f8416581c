"""Stand-in for torch, which SkyRL's JAX backend imports only for image inputs."""

__version__ = "0.0.0"
