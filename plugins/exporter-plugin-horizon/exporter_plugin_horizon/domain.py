"""The vendor's domain, and operators that are the vendor's already."""

from onnx_exporter import OpTable

DOMAIN = "horizon"
VERSION = 1

table = OpTable()
table.passthrough(f"{DOMAIN}::*", domain=DOMAIN, version=VERSION)
