"""What tells who or where in a text, by its form: paths, addresses, identifiers, secrets."""

from __future__ import annotations

import ipaddress
import re
from typing import Final

#: What a component of a path is made of where it stands in a sentence or a list.
_COMPONENT: Final = r"[^\s/\\:;,'\"()<>|\[\]{}=*?]+"
#: Kind → form. Of two that begin at the same place the first counts. No form begins inside of a word.
FORMS: Final = {
    "secret": r"\b(?:hf_|gh[opsu]_|github_pat_|sk-|xox[abp]-|AKIA)[\w-]{12,}",
    "url": r"\b[A-Za-z][A-Za-z0-9+.-]*://[^\s'\"<>)\]},;]+",
    "email": r"(?<![\w.+-])[A-Za-z][\w.+-]*@[A-Za-z][\w-]*(?:\.[\w-]+)*",
    "id": r"(?<![\w-])[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}(?![\w-])",
    "windows": r"(?<!\w)(?:[A-Za-z]:|\\)\\(?:[^\s/\\:;,'\"<>|*?]+\\?)+",
    "path": rf"(?<![\w.<>/~-])(?:~[\w.-]*|\.\.?)?(?:/{_COMPONENT})+/?",
    "ipv4": r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?!\.?\w)",
}
#: Forms that the descriptors of tensors have too (`ab::f0`): not looked for in what describes a kernel.
OTHER_FORMS: Final = {
    "mac": r"(?<![\w:-])(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}(?![\w:-])",
    "ipv6": r"(?<![\w:.])[0-9A-Fa-f]*:[0-9A-Fa-f:]*:[0-9A-Fa-f:.]*(?![\w:.])",
}
#: The placeholder that stands for a form.
PLACEHOLDER: Final = {"windows": "path", "ipv4": "address", "ipv6": "address", "mac": "address"}
#: A name after which a secret stands.
SECRET_NAME: Final = re.compile(r"token|secret|passw(?:or)?d|passphrase|api[-_]?key|access[-_]?key|credential", re.I)

_SYSTEM: Final = re.compile(
    r"/|/tmp|/(?:usr/)?s?bin(?:/.*)?|/(?:usr/)?lib(?:32|64|x32)?(?:/.*)?"
    r"|/proc(?:/(?:self|cpuinfo|meminfo|stat|swaps|sys)(?:/.*)?)?|/sys(?:/(?:devices/system|kernel)(?:/.*)?)?"
    r"|/sys/fs/cgroup|/dev/(?:null|shm|stdin|stdout|stderr)|/etc/(?:hostname|ld\.so[\w./-]*)"
)
_SHARED_OBJECT: Final = re.compile(r"[\w.+-]+\.(?:so(?:\.\d+)*|dylib|dll)|python[\d.]*")
#: oneDNN's own source tree, which its dispatch and error lines name.
_SOURCE: Final = re.compile(r"/(src/(?:common|cpu|gpu|graph|xpu)/\S+)")
#: Packages whose libraries matter to inference; the names of others may be somebody's own.
_PACKAGES: Final = re.compile(
    r"/(site-packages/(?:torch|numpy|scipy|sklearn|scikit_learn|openvino|ctranslate2|onnxruntime|tensorflow|jax|jaxlib|"
    r"paddle|mkl|onednn|cpulens|intel_extension_for_pytorch|faiss|xgboost|lightgbm)(?:[.\w-]*\.libs)?/\S+)"
)
_EXTENSION: Final = re.compile(r"[^/\\.]\.([A-Za-z][A-Za-z0-9]{0,8})$")


def is_address(kind: str, text: str) -> bool:
    """Whether something that looks like an address is one, of somebody: 127.0.0.1 and ::1 are everybody's."""
    if kind not in ("ipv4", "ipv6"):
        return True
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    return not (address.is_loopback or address.is_unspecified)


def public_part(path: str) -> tuple[str, str] | None:
    """The part to be replaced, and the rest that everybody has; None: the whole path is the system's.

    Shared objects keep their names, with their folder in a package that is known; oneDNN's sources theirs. Of all else
    nothing stays but the extension.
    """
    if _SYSTEM.fullmatch(path):
        return None
    name = re.split(r"[/\\]", path)[-1]
    if found := _SOURCE.search(path):
        return path[: found.start(1) - 1], "/" + found[1]
    if _SHARED_OBJECT.fullmatch(name) and len(name) < len(path):
        known = _PACKAGES.search(path)
        rest = "/" + known[1] if known else path[-len(name) - 1 :]
        return path[: -len(rest)], rest
    extension = _EXTENSION.search(path)
    return path, f".{extension[1]}" if extension else ""
