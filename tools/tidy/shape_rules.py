"""Sizes and names: what keeps a file readable in one sitting."""

import ast
import re

from cpp_text import code_only, functions
from files import Finding

FILE_LINES = 500
TEST_FILE_LINES = 800
FUNCTION_LINES = 70
TEST_FUNCTION_LINES = 120  # a table of cases is read line by line
COLUMNS = 100

VAGUE = ("manager", "helper", "util", "utils", "misc", "common")
VAGUE_IN_PATH = re.compile(rf"(^|[/_.-])({'|'.join(VAGUE)})s?([/_.-]|$)")
VAGUE_TYPE = re.compile(
    r"\b(class|struct|enum class|enum|union|using|concept|namespace)\s+"
    r"(?:\[\[\w+\]\]\s*)?(\w*(?:[Mm]anager|[Hh]elper|[Uu]tils?|[Mm]isc|[Cc]ommon))\b")
BOOLEAN_PARAMETER = re.compile(r"[(,]\s*(?:const\s+)?bool\s+(\w+)\s*(?:=\s*\w+\s*)?(?=[,)])")


def check_file_length(files):
    for file in files:
        if not file.is_code:
            continue
        limit = TEST_FILE_LINES if file.is_test else FILE_LINES
        if len(file.lines) > limit:
            yield Finding("file-length", file.path, limit + 1,
                          f"{len(file.lines)} lines: at most {limit}; give a part its own file")


def _function_spans(file):
    if file.is_cpp:
        yield from functions(file.text)
    elif file.suffix == ".py":
        for node in ast.walk(ast.parse(file.text)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield node.name, node.lineno, node.end_lineno


def check_function_length(files):
    for file in files:
        limit = TEST_FUNCTION_LINES if file.is_test else FUNCTION_LINES
        for name, first, last in _function_spans(file):
            length = last - first + 1
            if length > limit and not file.allows(first, "function-length"):
                yield Finding("function-length", file.path, first,
                              f"{name} has {length} lines: at most {limit}")


def check_columns(files):
    for file in files:
        if not file.is_code:
            continue
        for number, line in enumerate(file.lines, start=1):
            if len(line) > COLUMNS and not file.allows(number, "columns"):
                yield Finding("columns", file.path, number,
                              f"{len(line)} columns: at most {COLUMNS}")
            if line != line.rstrip() or "\t" in line.lstrip("\t"):
                if file.is_cpp or file.suffix == ".py":
                    yield Finding("white-space", file.path, number,
                                  "a tab, or white space at the end of the line")


def check_vague_names(files):
    for file in files:
        match = VAGUE_IN_PATH.search(file.path.lower())
        if match:
            yield Finding("vague-name", file.path, 1,
                          f"'{match.group(2)}' says nothing: name the file by what it does")
        if not file.is_cpp:
            continue
        for number, line in enumerate(code_only(file.text).splitlines(), start=1):
            match = VAGUE_TYPE.search(line)
            if match:
                yield Finding("vague-name", file.path, number,
                              f"'{match.group(2)}' says nothing: name it by what it does")


def check_boolean_parameters(files):
    """A call with `true` in it cannot be read: an enum, or two functions."""
    for file in files:
        if not (file.in_src and file.is_header):
            continue
        code = code_only(file.text)
        for match in BOOLEAN_PARAMETER.finditer(code):
            number = code.count("\n", 0, match.start(1)) + 1
            if not file.allows(number, "boolean-parameter"):
                yield Finding("boolean-parameter", file.path, number,
                              f"bool {match.group(1)}: take an enum, or make two functions")


CHECKS = (check_file_length, check_function_length, check_columns, check_vague_names,
          check_boolean_parameters)
