"""A rough reading of C++: comments and literals blanked, functions found by their braces."""

import re

TOKEN = re.compile(
    r'R"(?P<delimiter>[^()\\\s]{0,16})\((?:.|\n)*?\)(?P=delimiter)"'
    r'|//[^\n]*|/\*(?:.|\n)*?\*/'
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9A-Za-z_])'(?:\\.|[^'\\\n])+'")


def _blank(match):
    return re.sub(r"[^\n]", " ", match.group(0))


def code_only(text):
    """The text with comments and literals replaced by spaces: lines and columns stay."""
    return TOKEN.sub(_blank, text)


def comments_blanked(text):
    """The text with comments replaced by spaces; literals stay."""
    return TOKEN.sub(lambda m: _blank(m) if m.group(0).startswith(("//", "/*")) else m.group(0),
                     text)


def _without_preprocessor(code):
    lines = code.split("\n")
    continued = False
    for index, line in enumerate(lines):
        directive = continued or line.lstrip().startswith("#")
        continued = directive and line.rstrip().endswith("\\")
        if directive:
            lines[index] = ""
    return "\n".join(lines)


SCOPE = re.compile(r"\b(namespace|class|struct|union|enum|extern)\b")


def _is_scope(header):
    """True for namespaces and types: what stands inside them may be a function again."""
    before_parenthesis = header.split("(", 1)[0]
    return bool(SCOPE.search(before_parenthesis)) or not header.strip()


def functions(text):
    """Yields (name, first line, last line) of the functions outside other functions."""
    code = _without_preprocessor(code_only(text))
    stack = []
    start = 0
    for match in re.finditer(r"[{};]", code):
        position, mark = match.start(), match.group(0)
        if mark == "{":
            header = code[start:position]
            inside_function = any(kind != "scope" for kind, _, _ in stack)
            kind = "scope" if _is_scope(header) else "body"
            if not inside_function and kind == "body" and "(" in header:
                stack.append(("function", start + len(header) - len(header.lstrip()), header))
            else:
                stack.append(("scope" if kind == "scope" and not inside_function else "body",
                              position, header))
        elif mark == "}" and stack:
            kind, begin, header = stack.pop()
            if kind == "function":
                name = re.search(r"([~\w:]+)\s*\(", header)
                yield (name.group(1) if name else "?",
                       code.count("\n", 0, begin) + 1, code.count("\n", 0, position) + 1)
        start = position + 1
