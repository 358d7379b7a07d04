"""Who may include whom. The table itself is in docs/architecture.md: one place, read by both."""

import re

from cpp_text import comments_blanked
from files import Finding

TABLE_HEADER = re.compile(r"^\|\s*folder\s*\|\s*may include\s*\|")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')

# Costly or leaking types stay behind a wrapper, in .cpp files.
NEVER_IN_HEADERS = (
    "regex", "iostream", "nlohmann/", "yaml-cpp/", "CLI/", "sqlite3.h", "microhttpd.h",
    "spdlog/", "fmt/", "curl/", "openssl/", "prometheus/", "xxhash.h", "simdjson")

# The core has no clock, no I/O, no threads and no randomness: same state, same decision.
NEVER_IN_CORE = (
    "chrono", "random", "thread", "mutex", "shared_mutex", "condition_variable", "future",
    "fstream", "iostream", "filesystem", "ctime", "regex")
STANDARD_HEADER = re.compile(r"^[a-z_]+$")


def includes(file):
    """Yields (line number, '<' or '"', path)."""
    for number, line in enumerate(comments_blanked(file.text).splitlines(), start=1):
        match = INCLUDE.match(line)
        if match:
            yield number, match.group(1), match.group(2)


def read_table(files):
    """The rows of docs/architecture.md: folder -> the set of what it may include."""
    rows = {}
    for file in files:
        if file.path != "docs/architecture.md":
            continue
        in_table = False
        for line in file.lines:
            if TABLE_HEADER.match(line):
                in_table = True
            elif in_table and line.startswith("|"):
                cells = [cell.strip() for cell in line.strip("|").split("|")]
                if not set(cells[0]) <= set("-: "):
                    for folder in cells[0].split(","):
                        rows[folder.strip()] = {
                            word.strip() for word in cells[1].split(",") if word.strip()}
            else:
                in_table = False
    return rows


def _under(path, folder):
    return (path == folder or path.startswith((folder + "/", folder + "."))
            or (folder == "api/client" and path.startswith("api/client")))


def row_of(path, rows):
    """The longest row that holds the file; None when the table does not know its folder."""
    fitting = [folder for folder in rows if _under(path, folder)]
    return max(fitting, key=len) if fitting else None


def check_directions(files):
    rows = read_table(files)
    if not rows:
        yield Finding("include-direction", "docs/architecture.md", 1,
                      "the table '| folder | may include |' is missing")
        return
    for file in files:
        if not file.in_src or not file.is_cpp:
            continue
        path = file.path.removeprefix("src/")
        row = row_of(path, rows)
        if row is None:
            yield Finding("include-direction", file.path, 1,
                          "this folder has no row in the table of docs/architecture.md")
            continue
        allowed = rows[row] | {row}
        if "everything" in allowed:
            continue
        for number, mark, target in includes(file):
            if mark != '"' or file.allows(number, "include-direction"):
                continue
            if file.is_test and "/testing/" in target:
                continue
            if not any(_under(target, folder) for folder in allowed):
                yield Finding("include-direction", file.path, number,
                              f"{row} may not include {target}: allowed are "
                              f"{', '.join(sorted(allowed))}")


def check_headers(files):
    for file in files:
        if not (file.in_src and file.is_header):
            continue
        if "#pragma once" not in file.text:
            yield Finding("pragma-once", file.path, 1, "a header begins with #pragma once")
        if "/testing/" in file.path:
            continue
        for number, _, target in includes(file):
            if (target.startswith(tuple(n for n in NEVER_IN_HEADERS if not n[-1].isalpha()))
                    or target in NEVER_IN_HEADERS) and not file.allows(number, "header-include"):
                yield Finding("header-include", file.path, number,
                              f"<{target}> stays in .cpp files, behind a wrapper")


def check_core(files):
    for file in files:
        if not (file.path.startswith("src/core/") and file.is_cpp) or file.is_test:
            continue
        for number, mark, target in includes(file):
            if mark != "<" or target == "tl/expected.hpp" or file.allows(number, "core-include"):
                continue
            if target in NEVER_IN_CORE or not STANDARD_HEADER.match(target):
                yield Finding("core-include", file.path, number,
                              f"the core may not use <{target}>: it is a pure function")


def check_own_header_first(files):
    """A .cpp that includes its header first proves that the header compiles alone."""
    paths = {file.path for file in files}
    for file in files:
        if not file.in_src or file.suffix != ".cpp":
            continue
        header = file.path.removesuffix(".cpp") + ".h"
        if header not in paths:
            continue
        first = next(includes(file), None)
        if first is None or "src/" + first[2] != header:
            yield Finding("own-header-first", file.path, first[0] if first else 1,
                          f'the first include is its own header, "{header.removeprefix("src/")}"')


CHECKS = (check_directions, check_headers, check_core, check_own_header_first)
