"""The distribution that this program comes in, and its version."""

from __future__ import annotations

import functools

import importlib_metadata

OWN_DISTRIBUTION = "onnx-exporter"


@functools.cache
def core_version() -> str:
    """Version of the installed onnx-exporter."""
    return str(importlib_metadata.version(OWN_DISTRIBUTION))
