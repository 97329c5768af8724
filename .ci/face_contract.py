"""Face contract: import-linter's rule that a package is entered by what its `__all__` lists."""

import ast
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import grimp
from importlinter import Contract, ContractCheck, fields, output


class FaceContract(Contract):
    """Modules outside a package import the package itself, or a module that its `__all__` lists.

    Options:
        container: the package below which every package has a face; it needs none of its own.
    """

    type_name = "face"
    container = fields.StringField()

    def check(self, graph: grimp.ImportGraph, verbose: bool) -> ContractCheck:  # noqa: ARG002, FBT001  # the signature is import-linter's
        """Return whether every import of the graph enters each package by its face."""
        past = [
            f"{importer} imports {imported}, which is not in __all__ of {package}"
            for importer in sorted(graph.modules)
            for imported in sorted(graph.find_modules_directly_imported_by(importer))
            for package, name in self._entered(importer, imported)
            if name not in face_of(package)
        ]
        return ContractCheck(kept=not past, metadata={"past": past})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Print each import that goes past a face."""
        for line in check.metadata["past"]:
            output.print_error(line)

    def _entered(self, importer: str, imported: str) -> Iterator[tuple[str, str]]:
        """Yield each package that an import enters, and the name below it that it asks for."""
        parts = imported.split(".")
        for depth in range(1, len(parts)):
            package = ".".join(parts[:depth])
            is_within = importer == package or importer.startswith(f"{package}.")
            if package.startswith(f"{self.container}.") and not is_within:
                yield package, parts[depth]


@cache
def face_of(package: str) -> frozenset[str]:
    """Return what a package's `__all__` lists; nothing when it has none."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        return frozenset()
    for node in ast.parse(Path(spec.origin).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and "__all__" in map(ast.unparse, node.targets):
            return frozenset(ast.literal_eval(node.value))
    return frozenset()
