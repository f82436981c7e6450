"""The arguments of `export` in one object, checked before any work is done."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from onnx_exporter._convert import checked_custom_opsets
from onnx_exporter._enums import OperatorExportTypes, TrainingMode, as_operator_export_type, as_training_mode
from onnx_exporter._frontends._dynamic import unnamed
from onnx_exporter._loading import OPTIONS as PLUGIN_OPTIONS
from onnx_exporter._optable import NEWEST_OPSET, OLDEST_OPSET
from onnx_exporter._warnings import warn
from onnx_exporter.errors import ArgumentError

DEFAULT_OPSET = 18
"""The opset that is written unless another is asked for."""

_FIRST_OPSET_OF_FUNCTIONS = 15
_RESERVED = "onnx_exporter."
"""How metadata keys begin that are not the user's."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
    """What `export` was asked for; see there for the meaning of each."""

    opset_version: Any = None
    capture: Any = None
    dynamo: Any = None
    training: Any = None
    operator_export_type: Any = None
    input_names: Sequence[str] | None = None
    output_names: Sequence[str] | None = None
    dynamic_axes: Any = None
    dynamic_shapes: Any = None
    export_params: bool = True
    keep_initializers_as_inputs: bool | None = None
    do_constant_folding: bool = True
    custom_opsets: Mapping[str, int] | None = None
    export_modules_as_functions: Any = False
    verbose: bool | None = False
    doc_strings: bool = False
    check: bool = True
    plugins: Any = ()
    prefer: Any = ()
    external_data: bool | None = None
    verify: Any = False
    verify_args: Sequence[Any] | None = None
    rtol: float | None = None
    atol: float | None = None
    custom_op_libraries: Sequence[str | os.PathLike[str] | type[Any]] = ()
    doc_string: str | None = None
    producer_name: str | None = None
    metadata_props: Any = None
    autograd_inlining: bool = True
    sequence_inputs: bool = True
    report: bool | str | os.PathLike[str] = False
    progress: Callable[[str], None] | None = None
    settled: frozenset[str] = frozenset()
    """Options for which defaults of plugins do not count."""

    @property
    def opset(self) -> int:
        """The target opset."""
        return DEFAULT_OPSET if self.opset_version is None else int(self.opset_version)

    @property
    def by_export(self) -> bool:
        """Whether ``torch.export`` captures the model."""
        return self.capture == "export" if self.capture is not None else bool(self.dynamo)

    @property
    def weights_as_inputs(self) -> bool:
        """Whether weights with data are listed among the inputs."""
        if self.keep_initializers_as_inputs is None:
            return bool(self.operator_export_type != OperatorExportTypes.ONNX)
        return self.keep_initializers_as_inputs

    @property
    def fold_weights(self) -> bool:
        """Whether what depends on weights only is computed now; not where other weights may be given at run time."""
        asked_to_keep = bool(self.keep_initializers_as_inputs)
        return self.do_constant_folding and self.export_params and not asked_to_keep

    def checked(self) -> Options:
        """Returns the options with enums in place of what stands for them.

        Raises:
            ArgumentError: If one is wrong, or two contradict each other.
        """
        self._check()
        if lists := unnamed(self.dynamic_axes if isinstance(self.dynamic_axes, Mapping) else None):
            warn(
                f"dynamic_axes gives no names for the axes of {', '.join(map(repr, lists))}; they are called "
                f"{lists[0]}_dynamic_axes_1 and so on. Give a dict from axis to name to choose, and to say which are equal",
            )
        return self._normalised()

    def with_defaults(self, default_of: Callable[[str], tuple[Any, Any] | None]) -> Options:
        """Returns the options with defaults, those of plugins first, for those that were not given.

        Args:
            default_of: Returns the value for an option and the plugin that states it, or None.

        Raises:
            ArgumentError: If a value is wrong, or contradicts what was given.
        """
        given = {name for name in PLUGIN_OPTIONS if name in self.settled or getattr(self, name) is not None}
        if self.dynamo is not None:
            given.add("capture")
        stated = {name: default for name in PLUGIN_OPTIONS if name not in given and (default := default_of(name)) is not None}
        options = dataclasses.replace(self, **{name: value for name, (value, _) in stated.items()})
        try:
            options._check()
            options = options._normalised()
        except ArgumentError as error:
            whose = ", ".join(f"{name}={value!r} of plugin {plugin}" for name, (value, plugin) in stated.items())
            raise ArgumentError(f"{error}\n  defaults that plugins state: {whose}") from None
        return dataclasses.replace(options, operator_export_type=as_operator_export_type(options.operator_export_type))

    def _normalised(self) -> Options:
        return dataclasses.replace(
            self,
            custom_opsets=None if self.custom_opsets is None else checked_custom_opsets(self.custom_opsets),
            training=as_training_mode(self.training),
            operator_export_type=(
                None if self.operator_export_type is None else as_operator_export_type(self.operator_export_type)
            ),
        )

    def _check(self) -> None:
        opset = self.opset_version
        if opset is not None and (
            not isinstance(opset, int) or isinstance(opset, bool) or not OLDEST_OPSET <= opset <= NEWEST_OPSET
        ):
            raise ArgumentError(f"opset_version is {opset!r}; it must be a number from {OLDEST_OPSET} to {NEWEST_OPSET}")
        if self.capture not in (None, "trace", "export"):
            raise ArgumentError(f"capture is {self.capture!r}; it must be 'trace' or 'export'")
        if self.dynamo is not None and self.capture is not None and bool(self.dynamo) != (self.capture == "export"):
            raise ArgumentError(f"dynamo={self.dynamo!r} contradicts capture={self.capture!r}; give one of them")
        self._check_flags()
        self._check_mappings()
        self._check_functions()
        self._check_verification()

    def _check_flags(self) -> None:
        for name in ("export_params", "do_constant_folding", "autograd_inlining", "sequence_inputs"):
            if not isinstance(getattr(self, name), bool):
                raise ArgumentError(f"{name} is {getattr(self, name)!r}; it must be True or False")
        for name in ("verbose", "keep_initializers_as_inputs", "external_data"):
            if not isinstance(getattr(self, name), bool | None):
                raise ArgumentError(f"{name} is {getattr(self, name)!r}; it must be True, False or None")
        if not isinstance(self.report, bool | str | os.PathLike):
            raise ArgumentError(f"report is {self.report!r}; it must be True, False or the path of the report")

    def _check_mappings(self) -> None:
        if self.dynamic_axes is not None and not isinstance(self.dynamic_axes, Mapping):
            kind = type(self.dynamic_axes).__name__
            raise ArgumentError(f"dynamic_axes must be a dict from input or output names to axes, got {kind}")
        for name in ("doc_string", "producer_name"):
            if not isinstance(getattr(self, name), str | None):
                raise ArgumentError(f"{name} is {getattr(self, name)!r}; it must be a string")
        props = self.metadata_props
        texts = [text for pair in props.items() for text in pair] if isinstance(props, Mapping) else []
        if not isinstance(props, Mapping | None) or not all(isinstance(text, str) for text in texts):
            raise ArgumentError(f"metadata_props must be a dict of strings to strings, got {props!r}")
        if reserved := sorted(key for key in props or {} if key.startswith(_RESERVED)):
            raise ArgumentError(
                f"metadata_props has {reserved[0]!r}; keys that start with {_RESERVED!r} say how the file was made"
            )

    def _check_functions(self) -> None:
        given = self.export_modules_as_functions
        if isinstance(given, bool):
            chosen = given
        elif isinstance(given, set | frozenset | list | tuple) and all(
            isinstance(kind, type) and issubclass(kind, torch.nn.Module) for kind in given
        ):
            chosen = bool(given)
        else:
            raise ArgumentError(f"export_modules_as_functions is {given!r}; it must be True, False or a set of module classes")
        if chosen and self.opset < _FIRST_OPSET_OF_FUNCTIONS:
            raise ArgumentError(
                f"export_modules_as_functions needs opset {_FIRST_OPSET_OF_FUNCTIONS}, since a file of opset {self.opset} holds "
                f"no functions; give opset_version={_FIRST_OPSET_OF_FUNCTIONS} or later"
            )

    def _check_verification(self) -> None:
        if not isinstance(self.verify, bool):
            raise ArgumentError(f"verify is {self.verify!r}; it must be True or False")
        if self.verify_args is not None and not isinstance(self.verify_args, list | tuple):
            kind = type(self.verify_args).__name__
            raise ArgumentError(f"verify_args is {kind}; give a list of arguments, each like args")
        for name, value in (("rtol", self.rtol), ("atol", self.atol)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0):
                raise ArgumentError(f"{name} is {value!r}; it must be a number that is not negative")


# Arguments of torch.onnx.export that are not ours

_DROPPED = {
    "aten": "use operator_export_type=OperatorExportTypes.ONNX_ATEN",
    "export_raw_ir": "use operator_export_type=OperatorExportTypes.ONNX_FALLTHROUGH",
    "example_outputs": "leave it out: the outputs are found by running the model",
    "strip_doc_string": "use verbose=True to have source locations in the nodes' doc_string",
    "enable_onnx_checker": "leave it out, and catch CheckerError to go on with a file that the checker refuses",
    "use_external_data_format": "use external_data",
    "_retain_param_name": "leave it out: weights always keep their names",
}
"""Arguments that torch.onnx once had, and what to write instead."""

_NEUTRAL = {"optimize", "fallback", "profile", "dump_exported_program", "artifacts_dir"}
"""Arguments of torch.onnx's newer exporter that steer its own work and say nothing about the file."""


def translate_foreign(foreign: Mapping[str, Any]) -> dict[str, Any]:
    """Returns our arguments for those that only torch.onnx.export has, or once had.

    Raises:
        TypeError: If nobody ever had one of them.
        ArgumentError: If one asks for something that is done in another way here.
    """
    options: dict[str, Any] = {}
    for name, value in foreign.items():
        if name in _DROPPED:
            warn(f"export() argument {name!r} is deprecated: {_DROPPED[name]}", DeprecationWarning)
            options |= _meaning_of(name, value)
        elif name == "custom_translation_table":
            if value:
                raise ArgumentError(
                    "custom_translation_table holds functions for torch.onnx's own exporter; give symbolic functions in an "
                    "OpTable with plugins=[table]"
                )
        elif name not in _NEUTRAL:
            raise TypeError(f"export() got an unexpected keyword argument {name!r}")
        elif name in ("profile", "dump_exported_program") and value:
            warn(f"{name} has no effect here; report=True tells what each stage did")
    return options


def _meaning_of(name: str, value: Any) -> dict[str, Any]:
    if name == "aten" and value:
        return {"operator_export_type": OperatorExportTypes.ONNX_ATEN}
    if name == "export_raw_ir" and value:
        return {"operator_export_type": OperatorExportTypes.ONNX_FALLTHROUGH}
    if name == "strip_doc_string":
        return {"doc_strings": not value}
    if name == "enable_onnx_checker":
        return {"check": bool(value)}
    if name == "use_external_data_format" and value is not None:
        return {"external_data": bool(value) or None}
    return {}


__all__ = ["DEFAULT_OPSET", "Options", "TrainingMode", "translate_foreign"]
