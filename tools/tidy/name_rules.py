"""Names that meet when several files of a target are compiled as one (decision 32)."""

import re

from cpp_text import code_only
from files import Finding

NAMESPACE = re.compile(r"^\s*(?:inline )?namespace\s*([\w:]*)\s*\{")
DECLARATION = re.compile(
    r"^(?:template\s*<.*?>\s*)?"
    r"(?:(?:class|struct|union|enum class|enum)\s+(?:\[\[\w+\]\]\s*)?(\w+)"
    r"|(?:[\w:<>,*&\[\]. ]|\([^()]*\)>)+?[ &*](\w+)\s*(?:\(|\{|=|;|\[))")
ALIAS = re.compile(r"^(?:__extension__ )?(?:using|namespace|friend)\b")
FOUND_BY_TYPE = ("PrintTo", "operator")  # looked up beside their argument's type


def unnamed(text):
    """Yields (line number, enclosing namespace, name) of what an anonymous namespace declares."""
    scopes, depth = [], 0
    for number, line in enumerate(code_only(text).splitlines(), start=1):
        opened = NAMESPACE.match(line)
        if opened:
            scopes.append((depth, opened.group(1)))
        elif (depth == len(scopes) and line[:1].strip() and not ALIAS.match(line)
              and any(name == "" for _, name in scopes)):
            match = DECLARATION.match(line)
            name = match and (match.group(1) or match.group(2))
            if name and name not in FOUND_BY_TYPE:
                yield number, "::".join(name for _, name in scopes), name
        depth += line.count("{") - line.count("}")
        while scopes and depth <= scopes[-1][0]:
            scopes.pop()


def _target(file):
    """Files that may be compiled together; a little more than CMake's targets."""
    stem = file.path.rsplit(".", 1)[0]
    kind = next((end for end in ("_test", "_property") if stem.endswith(end)), "")
    if not kind and "/testing/" in file.path:
        kind = "testing"
    return tuple(file.path.split("/")[:2]), kind


def check_unnamed_names(files):
    """Two overloads would be a silent change of meaning: a call takes the one that fits better."""
    owners = {}
    for file in files:
        if (file.suffix != ".cpp" or file.path.endswith("_fuzz.cpp")
                or not file.path.startswith(("src/", "tests/"))):
            continue
        for number, scope, name in unnamed(file.text):
            owner = owners.setdefault((_target(file), scope, name), file.path)
            if owner != file.path and not file.allows(number, "unnamed-name"):
                yield Finding("unnamed-name", file.path, number,
                              f"{name} is in an anonymous namespace of {owner} too: share it, "
                              "or give one another name")


CHECKS = (check_unnamed_names,)
