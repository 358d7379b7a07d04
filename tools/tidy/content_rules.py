"""What must not be in a file, and what must be beside it."""

import re

from cpp_text import code_only, comments_blanked
from files import Finding
from include_rules import includes, read_table, row_of

# Written in pieces so that this file passes its own check.
MACHINE_PATHS = re.compile(r"(?<![\w.$}/-])/(?:" + "|".join(("work", "home", "root", "Users"))
                           + r")/[\w.]")
FLOATING = re.compile(r"\b(float|double)\b")
CLOCK_OR_CHANCE = re.compile(
    r"\b(std::chrono|system_clock|steady_clock|gettimeofday|clock_gettime|random_device|mt19937"
    r"|std::rand|std::time)\b")
UNORDERED = re.compile(r"\bstd::unordered_(?:multi)?(?:map|set)\s*<[^;{]*>\s*&?\s*(\w+)\s*[;={]")
RANGE_FOR = re.compile(r"\bfor\s*\([^;()]*:\s*(?:\w+(?:\.|->))*(\w+)\s*\)")


def check_machine_paths(files):
    for file in files:
        for number, line in enumerate(file.lines, start=1):
            match = MACHINE_PATHS.search(line)
            if match and not file.allows(number, "machine-path"):
                yield Finding("machine-path", file.path, number,
                              f"'{match.group(0)}...' is a path of one machine")


def _core_files(files):
    return (file for file in files
            if file.path.startswith("src/core/") and file.is_cpp and not file.is_test)


def check_core_is_exact(files):
    for file in _core_files(files):
        for number, line in enumerate(code_only(file.text).splitlines(), start=1):
            if FLOATING.search(line) and not file.allows(number, "core-float"):
                yield Finding("core-float", file.path, number,
                              "no floating point in the core: integers or fixed point")
            if CLOCK_OR_CHANCE.search(line):
                yield Finding("core-clock", file.path, number,
                              "the core reads no clock and no chance: both come with the event")


def check_core_iteration(files):
    """The order of an unordered container differs between runs and must not reach a decision."""
    unordered = set()
    for file in _core_files(files):
        unordered.update(UNORDERED.findall(code_only(file.text)))
    for file in _core_files(files):
        for number, line in enumerate(code_only(file.text).splitlines(), start=1):
            match = RANGE_FOR.search(line)
            if match and match.group(1) in unordered and not file.allows(number, "core-order"):
                yield Finding("core-order", file.path, number,
                              f"iterates over the unordered container {match.group(1)}")


def check_folders_have_tests(files):
    """Every row of the table that holds a .cpp is included by at least one test."""
    rows = read_table(files)
    with_code, tested = {}, set()
    for file in files:
        if not file.is_cpp:
            continue
        row = row_of(file.path.removeprefix("src/"), rows) if file.in_src else None
        if file.is_test:
            if row is not None:
                tested.add(row)
            tested.update(row_of(target, rows) for _, mark, target in includes(file)
                          if mark == '"')
        elif row not in (None, "main") and file.suffix == ".cpp":
            with_code.setdefault(row, file.path)
    for row, path in sorted(with_code.items()):
        if row not in tested:
            yield Finding("missing-test", path, 1, f"no test includes anything of src/{row}")


def untested_sources(files):
    """The .cpp files whose header no test includes: a report, not a fault."""
    included = set()
    for file in files:
        if file.is_cpp and file.is_test:
            included.update("src/" + target for _, mark, target in includes(file) if mark == '"')
    paths = {file.path for file in files}
    for file in files:
        header = file.path.removesuffix(".cpp") + ".h"
        if (file.in_src and file.suffix == ".cpp" and not file.is_test and header in paths
                and header not in included):
            yield file.path


def check_assertions(files):
    """assert() is gone in a release build: NEAP_CHECK is not."""
    for file in files:
        if not (file.in_src and file.is_cpp) or file.is_test:
            continue
        for number, line in enumerate(comments_blanked(file.text).splitlines(), start=1):
            if re.search(r"(?<![\w.:>])assert\s*\(", line):
                yield Finding("assert", file.path, number, "use NEAP_CHECK: it stays on")


CHECKS = (check_machine_paths, check_core_is_exact, check_core_iteration,
          check_folders_have_tests, check_assertions)
