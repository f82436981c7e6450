"""Lookup, precedence and clashes."""

from __future__ import annotations

import pytest

from onnx_exporter import GraphContext, OpTable, RegistrationError, Value
from onnx_exporter._registry import Precedence, Provider, Registry


def table_of(*names: str, opset: int = 7, replaces: bool = False) -> OpTable:
    table = OpTable(opset, replaces=replaces)

    @table.op(*names)
    def function(g: GraphContext, x: Value) -> Value:
        return x

    return table


def provider(name: str, *tables: OpTable, precedence: Precedence = Precedence.PLUGIN) -> Provider:
    return Provider(name, f"dist-{name}", "1.0", precedence, tables)


def who(registry: Registry, op: str, overload: str = "", opset: int = 18) -> list[tuple[str, int]]:
    return [(candidate.provider.name, candidate.entry.opset) for candidate in registry.candidates(op, overload, opset)]


def test_the_highest_opset_at_or_below_the_target_wins():
    registry = Registry([provider(f"o{n}", table_of("aten::a", opset=n), precedence=Precedence.OPSET) for n in (7, 11, 13)])
    assert who(registry, "aten::a", opset=12) == [("o11", 11), ("o7", 7)]
    assert who(registry, "aten::a", opset=28)[0] == ("o13", 13)
    assert who(registry, "aten::a", opset=7) == [("o7", 7)]


def test_there_is_no_search_upwards():
    registry = Registry([provider("o13", table_of("aten::a", opset=13), precedence=Precedence.OPSET)])
    assert who(registry, "aten::a", opset=12) == []
    assert registry.available_from("aten::a", "", 12) == 13


def test_an_overload_beats_the_bare_name():
    registry = Registry(
        [
            provider("o7", table_of("aten::a.x", opset=7), precedence=Precedence.OPSET),
            provider("o13", table_of("aten::a", opset=13), precedence=Precedence.OPSET),
        ]
    )
    assert who(registry, "aten::a", "x") == [("o7", 7), ("o13", 13)]
    assert who(registry, "aten::a", "y") == [("o13", 13)]


def test_precedence():
    registry = Registry(
        [
            provider("opset", table_of("aten::a"), precedence=Precedence.OPSET),
            provider("preferred", table_of("aten::a", replaces=True), precedence=Precedence.PREFERRED),
            provider("call", table_of("aten::a", replaces=True), precedence=Precedence.CALL),
        ]
    )
    assert [name for name, _ in who(registry, "aten::a")] == ["call", "preferred", "opset"]


def test_two_plugins_claim_one_name():
    with pytest.raises(RegistrationError) as caught:
        who(Registry([provider("one", table_of("foo::a")), provider("two", table_of("foo::a"))]), "foo::a")
    text = str(caught.value)
    assert "one (dist-one 1.0)" in text
    assert "two (dist-two 1.0)" in text
    assert text.count(__file__) == 2
    assert "no:one" in text


def test_a_plugin_claims_a_built_in_name():
    with pytest.raises(RegistrationError, match="replaces=True"):
        who(
            Registry([provider("one", table_of("aten::a")), provider("o7", table_of("aten::a"), precedence=Precedence.OPSET)]),
            "aten::a",
        )


def test_a_rule_that_waits_to_be_preferred_is_told():
    table = OpTable(opset=9, replaces=True)
    table.passthrough("demo::*", domain="com.demo")
    registry = Registry([provider("one", table)])
    assert registry.passthrough("demo::frob", 13) is None
    (line,) = registry.stand_by("demo::frob", "", 13)
    assert line.startswith("plugin one")
    assert "would convert it if it were preferred: prefer=['one'], --prefer one" in line
    assert not registry.stand_by("demo::frob", "", 8)
    assert not registry.stand_by("other::frob", "", 13)


def test_a_replacing_table_acts_only_when_preferred():
    builtin = provider("o7", table_of("aten::a"), precedence=Precedence.OPSET)
    replacing = table_of("aten::a", replaces=True)
    assert who(Registry([builtin, provider("one", replacing)]), "aten::a") == [("o7", 7)]
    preferred = Registry([builtin, provider("one", replacing, precedence=Precedence.PREFERRED)])
    assert who(preferred, "aten::a")[0] == ("one", 7)


def test_one_plugin_may_give_several_opsets():
    registry = Registry([provider("one", table_of("foo::a", opset=9), table_of("foo::a", opset=13))])
    assert who(registry, "foo::a") == [("one", 13), ("one", 9)]


def test_two_built_in_tables_of_one_opset():
    with pytest.raises(RegistrationError, match="two tables of opset 7"):
        Registry([provider("o7", table_of("aten::a"), table_of("aten::a"), precedence=Precedence.OPSET)])


def test_order_of_providers_does_not_matter():
    providers = [provider(f"o{n}", table_of("aten::a", opset=n), precedence=Precedence.OPSET) for n in (7, 11, 13)]
    assert who(Registry(providers), "aten::a") == who(Registry(reversed(providers)), "aten::a")


def test_two_registries_live_side_by_side():
    one, two = Registry([provider("one", table_of("foo::a"))]), Registry([provider("two", table_of("foo::b"))])
    assert "foo::a" in one
    assert "foo::a" not in two


def test_passthrough_patterns():
    table = OpTable(opset=9)
    table.passthrough("acme::*", domain="com.acme")
    registry = Registry([provider("acme", table)])
    found = registry.passthrough("acme::frob", 9)
    assert found is not None
    assert found[0].domain == "com.acme"
    assert registry.passthrough("acme::frob", 8) is None
    assert registry.passthrough("other::frob", 9) is None


def test_close_names():
    registry = Registry([provider("o7", table_of("aten::max_pool2d"), precedence=Precedence.OPSET)])
    assert registry.close_names("aten::max_pool3d") == ["aten::max_pool2d"]


def test_what_a_lookup_finds_is_kept():
    registry = Registry([provider("o7", table_of("aten::a"), precedence=Precedence.OPSET)])
    assert registry.candidates("aten::a", "x", 18) is registry.candidates("aten::a", "x", 18)
    assert registry.candidates("aten::b", "", 18) is registry.candidates("aten::b", "", 18)
