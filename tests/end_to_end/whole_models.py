"""Whole models of many libraries, small and with random weights, each with inputs of any size."""

from __future__ import annotations

from whole_models_detection import DETECTION
from whole_models_graph import OTHERS
from whole_models_language import LANGUAGE
from whole_models_spec import WholeModel
from whole_models_vision import VISION

__all__ = ["MODELS", "WholeModel"]

MODELS: dict[str, WholeModel] = DETECTION | VISION | LANGUAGE | OTHERS
