"""`Graph`: a program as data. Inputs, nodes in program order, outputs.

A graph computes nothing: backends run it, passes rewrite it. Nodes are immutable and may be shared by several graphs,
so a pass copies only what it changes. Graphs are walked in loops over `nodes`, which are in topological order: each
comes after its inputs. Nothing here recurses, however deep the graph.
"""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

from ..drawable import Drawable
from ..ir import INPUT, Node
from .build import input_node, topological_order, with_inputs
from .cost import Cost
from .cost import count as count_cost
from .values import is_splat, params_key, splat_key


class Graph(Drawable):
    """A program as data.

    Args:
        inputs: nodes whose primitive is `INPUT`, in the order in which values are given.
        outputs: any nodes, inputs and repetitions allowed.
        nodes: all others in program order, also those that no output needs; derived from the outputs if not given.
        name: what the program is called in listings.
        verify: check all rules of a graph (see `minitorch.graph.verify`).

    Raises:
        GraphError: if it breaks a rule (``MT601``).

    Example:
        >>> graph = Graph.parse('''
        ... graph(x: f32[2,3]):
        ...   %0 = mul(x, 2.0)
        ...   %1 = reduce_sum(%0, dims=[1])
        ...   return %1
        ... ''')
        >>> print(graph)
        graph(x: f32[2,3]):
          %0 = mul(x, 2.0)              : f32[2,3]
          %1 = reduce_sum(%0, dims=[1]) : f32[2]
          return %1
        >>> graph.cost().flops
        12
    """

    inputs: tuple[Node, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[Node, ...]
    name: str

    def __init__(
        self,
        inputs: Iterable[Node] = (),
        outputs: Iterable[Node] = (),
        nodes: Iterable[Node] | None = None,
        name: str = "graph",
        verify: bool = True,
    ) -> None:
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        if nodes is None:
            nodes = [node for node in topological_order(self.outputs) if node.primitive is not INPUT]
        self.nodes = tuple(nodes)
        self.name = name
        self._key: Hashable | None = None
        if verify:
            self.verify()

    def verify(self) -> None:
        """Check all rules of a graph.

        Raises:
            GraphError: naming the node, the rule and the user's line (``MT601``).
        """
        from .verify import verify

        verify(self)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle nodes in program order: each comes after its inputs, so nothing recurses."""
        return _made, (type(self), self.inputs, self.nodes, self.outputs, self.name)

    # Text -----------------------------------------------------------------------------------------------

    def __str__(self) -> str:
        from .text import listing

        return listing(self)

    def __repr__(self) -> str:
        return f"<{self.name}: {len(self.inputs)} inputs, {len(self.nodes)} nodes, {len(self.outputs)} outputs>"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    @staticmethod
    def parse(text: str) -> Graph:
        """Read a listing, as `str` gives it; alignment, comments and the types of nodes may be left out.

        Raises:
            ParseError: with the number of the line (``MT602``).
        """
        from .parse import parse

        return Graph(*parse(text, Graph), verify=False)

    # Identity -------------------------------------------------------------------------------------------

    def key(self, names: bool = False) -> Hashable:
        """Return a key that is equal for graphs that compute the same thing in the same way, e.g. for a cache of code.

        Sources and the graph's name are left out, and the names of the inputs too unless `names` is set. Literals count
        by their bits. The time is linear in the size of the graph.
        """
        places: dict[Node, Hashable] = {node: ~index for index, node in enumerate(self.inputs)}
        rows: list[Hashable] = [
            (node.spec.shape, node.spec.dtype, node.params["name"] if names else None) for node in self.inputs
        ]
        count = 0
        for node in self.nodes:
            if is_splat(node):
                places[node] = splat_key(node)
                continue
            operands = tuple([places[operand] for operand in node.inputs])
            rows.append((node.primitive.name, operands, params_key(node.params)))
            places[node] = count
            count += 1
        rows.append(tuple([places[node] for node in self.outputs]))
        return tuple(rows)

    def structurally_equal(self, other: Graph) -> bool:
        """Return whether both listings are the same but for sources: names of inputs, nodes, their order, outputs."""
        return self._named_key == other._named_key

    def __eq__(self, other: object) -> bool:
        """Compare by structure, so that ``Graph.parse(str(graph)) == graph``; nodes, its parts, compare by identity.

        Example:
            >>> text = "graph(x: f32[2]): %0 = neg(x) return %0"
            >>> Graph.parse(text) == Graph.parse(text), Graph.parse(text) == Graph.parse(text.replace("x", "y"))
            (True, False)
        """
        return self is other or (self.structurally_equal(other) if isinstance(other, Graph) else NotImplemented)

    def __hash__(self) -> int:
        return hash(self._named_key)

    @property
    def _named_key(self) -> Hashable:
        if self._key is None:
            self._key = self.key(names=True)
        return self._key

    # Parts and copies -----------------------------------------------------------------------------------

    def users(self) -> dict[Node, tuple[Node, ...]]:
        """Map every node, inputs included, to the nodes that use it, in program order, each once."""
        users: dict[Node, dict[Node, None]] = {node: {} for node in (*self.inputs, *self.nodes)}
        for node in self.nodes:
            for operand in node.inputs:
                users[operand][node] = None
        return {node: tuple(found) for node, found in users.items()}

    def subgraph(self, outputs: Iterable[Node], keep_inputs: bool = True) -> Graph:
        """Return the nodes that some nodes depend on, in program order, with all inputs or only the needed ones."""
        outputs = tuple(outputs)
        needed = set(topological_order(outputs))
        return Graph(
            (node for node in self.inputs if keep_inputs or node in needed),
            outputs,
            (node for node in self.nodes if node in needed),
            self.name,
        )

    def substitute(self, replacements: Mapping[Node, Node]) -> Graph:
        """Return a copy in which other nodes replace some nodes wherever these are used.

        A replacement is taken as it is: in ``{x: relu_of_x}`` the new node still reads `x` itself. It need not be of
        this graph; its dependencies come with it. Replaced inputs are removed unless a node still reads them; inputs
        that a replacement brings along take their place.

        Raises:
            ShapeError, DTypeError: if a replacement does not fit where it is used.
        """
        emitted: dict[Node, None] = {}  # a dict, for its order
        brought: list[Node] = []  # inputs old and new, each new one in the place of the one that it replaces

        def emit(node: Node) -> Node:
            for each in topological_order((node,), emitted):
                emitted[each] = None
                if each.primitive is INPUT and each not in originals:
                    brought.append(each)
            return node

        originals = set(self.inputs)
        mapped: dict[Node, Node] = {}
        for node in self.inputs:
            brought.append(node)
            mapped[node] = emit(replacements.get(node, node))
        for node in self.nodes:
            copy = with_inputs(node, tuple([mapped[operand] for operand in node.inputs]))
            mapped[node] = emit(replacements.get(node, copy))
        return Graph(
            (node for node in brought if node in emitted),
            (mapped[node] for node in self.outputs),
            (node for node in emitted if node.primitive is not INPUT),
            self.name,
        )

    def with_nodes(self, nodes: Iterable[Node], outputs: Iterable[Node]) -> Graph:
        """Return another program with the same inputs, as a pass makes one.

        Raises:
            GraphError: if it breaks a rule; unchanged nodes are not checked again (``MT601``).
        """
        from .verify import verify

        graph = Graph(self.inputs, outputs, nodes, self.name, verify=False)
        verify(graph, trusted=self)
        return graph

    def rename(self, names: Mapping[str, str], name: str | None = None) -> Graph:
        """Return a copy whose inputs have other names, given as ``{old: new}``; `name` is that of the graph itself.

        Raises:
            GraphError: if two inputs would have one name (``MT601``).
        """
        renamed = {
            node: input_node(names[node.params["name"]], node.spec, node.source)
            for node in self.inputs
            if node.params["name"] in names
        }
        graph = self.substitute(renamed)
        graph.name = name or self.name
        return graph

    # Counts ---------------------------------------------------------------------------------------------

    def count(self) -> Counter[str]:
        """Count the nodes of each primitive by its name; splat constants, written in place, are not counted.

        Example:
            >>> Graph.parse("graph(x: f32[2]): %0 = add(x, 1.0) %1 = add(%0, %0) return %1").count()
            Counter({'add': 2})
        """
        return Counter(node.primitive.name for node in self.nodes if not is_splat(node))

    def cost(self) -> Cost:
        """Count operations, bytes and peak memory of running it node by node, from shapes alone; see `Cost`."""
        return count_cost(self)


def _made(
    kind: type[Graph], inputs: tuple[Node, ...], nodes: tuple[Node, ...], outputs: tuple[Node, ...], name: str
) -> Graph:
    """Return a graph of these parts, which has been verified."""
    return kind(inputs, outputs, nodes, name, verify=False)
