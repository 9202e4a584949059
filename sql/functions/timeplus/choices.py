"""CASE, IN and BETWEEN: forms that compare a value with several, or choose one of several."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from sqlglot import exp

from dovetail.sql.functions.timeplus.comparable import expect_one_type
from dovetail.sql.functions.translate import Translator, Visit
from dovetail.sql.functions.typed import Typed, bracketed


def _compared(translator: Translator, value: Typed, node: exp.Expr) -> Typed:
    """What ``value`` is compared with. Raises SqlError for types that have no comparison."""
    other = translator(node)
    translator.operation(exp.EQ(), value, other)
    return other


def _in(translator: Translator, node: exp.Expr) -> Typed:
    if node.args.get("unnest") or node.args.get("field"):
        raise translator.unsupported(node)
    value = translator(node.this)
    tree = bracketed(value.tree)
    if (query := node.args.get("query")) is not None:
        return translator.known(exp.In(this=tree, query=translator.tree(query)), pa.bool_())
    values = [bracketed(_compared(translator, value, one).tree) for one in node.expressions]
    return translator.known(exp.In(this=tree, expressions=values), pa.bool_())


def _between(translator: Translator, node: exp.Expr) -> Typed:
    value = translator(node.this)
    low, high = (bracketed(_compared(translator, value, node.args[name]).tree) for name in ("low", "high"))
    tree: exp.Expr = exp.Between(this=bracketed(value.tree), low=low, high=high)
    if node.args.get("symmetric"):
        swapped = exp.Between(this=bracketed(value.tree), low=high.copy(), high=low.copy())
        tree = exp.Paren(this=exp.Or(this=tree, expression=swapped))
    return translator.known(tree, pa.bool_())


def _case(translator: Translator, node: exp.Expr) -> Typed:
    subject = None if node.args.get("this") is None else translator(node.this)
    case = exp.Case(this=None if subject is None else subject.tree)
    given: list[Typed] = []
    for branch in node.args["ifs"]:
        if subject is None:
            condition = translator.condition(branch.this)
        else:
            condition = _compared(translator, subject, branch.this).tree
        given.append(translator(branch.args["true"]))
        case.when(condition.copy(), given[-1].tree.copy(), copy=False)
    otherwise = node.args.get("default")
    if otherwise is not None:
        given.append(translator(otherwise))
        case.else_(given[-1].tree.copy(), copy=False)
    expect_one_type(given, "CASE")
    return translator.known(exp.Paren(this=case))


CHOICES: Mapping[type[exp.Expr], Visit] = {exp.In: _in, exp.Between: _between, exp.Case: _case}
