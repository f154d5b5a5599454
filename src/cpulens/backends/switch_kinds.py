"""The kinds of switches: how each is read, changed, and put back as it was found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from cpulens.backends import opt_einsum, python_native, pytorch, verbosity
from cpulens.backends.levels import parse_level
from cpulens.backends.pytorch import Lacking

#: Changes a value and returns what puts back the one that was found.
Change = Callable[[Any], Callable[[], None]]


class Switch(NamedTuple):
    """One row. `change` is None for one that can only be read; `refusal` then says why."""

    name: str
    summary: str
    read: Callable[[], Any]
    change: Change | None = None
    refusal: str = ""
    kind: type | None = bool


def attribute(name: str, summary: str, kind: type | None = bool) -> Switch:
    """An attribute below torch.backends."""
    owner_path, _, attribute = f"backends.{name}".rpartition(".")

    def change(value: Any) -> Callable[[], None]:
        owner, found = pytorch.lookup(owner_path), read()
        if found is None:
            raise Lacking(f"{name} has no value to change: PyTorch {pytorch.version()} is built without its device")
        setattr(owner, attribute, value)
        return lambda: setattr(owner, attribute, found)

    def read() -> Any:
        return pytorch.lookup(f"{owner_path}.{attribute}")

    return Switch(name, summary, read, change, kind=kind)


def functions(name: str, summary: str, getter: str, setter: str) -> Switch:
    """A pair of functions below torch."""

    def change(value: Any) -> Callable[[], None]:
        found, put = pytorch.lookup(getter, name)(), pytorch.lookup(setter, name)
        put(value)
        return lambda: put(found)

    return Switch(name, summary, lambda: bool(pytorch.lookup(getter, name)()), change)


_GET_PRECISION: Final = "_C._get_fp32_precision_getter"
_SET_PRECISION: Final = "_C._set_fp32_precision_setter"


def precision(name: str, backend: str, operation: str, summary: str) -> Switch:
    """One place of PyTorch's tree of precisions; "none" takes the place's value from the one above.

    `torch.backends.mkldnn.fp32_precision` sets the root instead of oneDNN's place (2.13), so the tree is used itself.
    """

    def change(value: Any) -> Callable[[], None]:
        put, found = pytorch.lookup(_SET_PRECISION, name), _inherited(name, backend, operation)
        put(backend, operation, value)
        return lambda: put(backend, operation, found)

    def read() -> Any:
        return pytorch.lookup(_GET_PRECISION, name)(backend, operation)

    return Switch(name, summary, read, change, kind=str)


def _inherited(name: str, backend: str, operation: str) -> str:
    """A place's value, "none" where it says the same as the one above: which of both it was can't be read."""
    get = pytorch.lookup(_GET_PRECISION, name)
    if (backend, operation) == ("generic", "all"):
        return str(get(backend, operation))
    above = (backend, "all") if operation != "all" else ("generic", "all")
    own = str(get(backend, operation))
    return "none" if own == get(*above) else own


def tf32(name: str, summary: str, operations: tuple[str, ...]) -> Switch:
    """An older switch that writes into the tree of precisions: what it overwrites there is put back too."""
    plain = attribute(name, summary)
    assert plain.change is not None
    apply = plain.change

    def change(value: Any) -> Callable[[], None]:
        found = {operation: _inherited(name, "cuda", operation) for operation in operations}
        undo = apply(value)

        def put_back() -> None:
            undo()
            for operation, precision in found.items():
                pytorch.lookup(_SET_PRECISION, name)("cuda", operation, precision)

        return put_back

    return plain._replace(change=change)


def reduction(precision: str) -> tuple[Switch, Switch]:
    """Whether products may reduce in a precision, and whether split-k ones may: PyTorch sets both together."""
    name = f"cuda.matmul.allow_{precision}_reduced_precision_reduction"
    plain = attribute(name, f"whether {precision} products may reduce in it; a pair sets split-k too", None)

    def change(value: Any) -> Callable[[], None]:
        products = pytorch.lookup("backends.cuda.matmul", name)
        attribute = name.rpartition(".")[2]
        found = (getattr(products, attribute), getattr(products, f"{attribute}_split_k"))
        setattr(products, attribute, value)
        return lambda: setattr(products, attribute, found)

    split_k = read_only(
        f"{name}_split_k",
        f"whether split-k {precision} products may reduce in it",
        lambda: pytorch.lookup(f"backends.{name}_split_k"),
        f"PyTorch sets it with its partner, as a pair: {name} = (allow, allow_split_k)",
    )
    return plain._replace(change=change), split_k


def both(name: str, summary: str, kind: type) -> Switch:
    """A function of torch.backends that answers without an argument and sets with one."""

    def change(value: Any) -> Callable[[], None]:
        function = pytorch.lookup(f"backends.{name}")
        found = function()
        function(value)

        def put_back() -> None:
            function(found)

        return put_back

    def read() -> Any:
        return _plain(pytorch.lookup(f"backends.{name}")())

    return Switch(name, summary, read, change, kind=kind)


def _plain(value: Any) -> Any:
    """PyTorch's enumerations by the words that it takes: `_BlasBackend.Cublas` → "cublas"."""
    return value if isinstance(value, int) and type(value) is int else str(value).rpartition(".")[2].lower()


def read_only(name: str, summary: str, read: Callable[[], Any], refusal: str) -> Switch:
    """A value that nothing here can change."""
    return Switch(name, summary, read, None, refusal, None)


def verbose(name: str, library: str) -> Switch:
    """The verbose level of oneDNN or oneMKL: a request, taken back afterwards."""

    def change(value: Any) -> Callable[[], None]:
        request = verbosity.acquire(**{library: parse_level(library, value)})
        return lambda: verbosity.release(request)

    return Switch(name, "verbose level", lambda: verbosity.level(library), change, kind=None)


def dsl(one: python_native.Dsl) -> Switch:
    """Whether the operators of a DSL may be used."""

    def change(value: Any) -> Callable[[], None]:
        found = one.enabled
        one.enabled = value

        def put_back() -> None:
            one.enabled = found

        return put_back

    return Switch(f"python_native.{one.name}.enabled", "whether its operators may be used", lambda: one.enabled, change)


def einsum(name: str, summary: str, kind: type) -> Switch:
    """A switch of opt_einsum, which works without PyTorch too."""
    switches: Any = opt_einsum

    def change(value: Any) -> Callable[[], None]:
        return opt_einsum.swap(name, value)

    return Switch(f"opt_einsum.{name}", summary, lambda: getattr(switches, name), change, kind=kind)
