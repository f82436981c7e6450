"""Settings for every test."""

from __future__ import annotations

import torch

# Tests run in several processes; a process that takes every core only slows the others
torch.set_num_threads(1)
