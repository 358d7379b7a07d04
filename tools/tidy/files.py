"""Which files the lint reads, and what kind each is."""

import pathlib
import subprocess

CODE_SUFFIXES = {".cpp", ".h", ".c", ".py", ".sh", ".js", ".ts", ".css", ".cmake"}


class SourceFile:
    """A text file of the repository with its path from the root."""

    def __init__(self, root, path):
        self.path = path
        self.text = (root / path).read_text(encoding="utf-8", errors="replace")
        self.lines = self.text.splitlines()

    @property
    def name(self):
        return self.path.rsplit("/", 1)[-1]

    @property
    def suffix(self):
        return pathlib.PurePosixPath(self.path).suffix

    @property
    def is_cpp(self):
        return self.suffix in (".cpp", ".h")

    @property
    def is_header(self):
        return self.suffix == ".h"

    @property
    def is_test(self):
        stem = pathlib.PurePosixPath(self.path).stem
        return (stem.endswith(("_test", "_property", "_fuzz", "_bench"))
                or stem.startswith("test_")
                or "/testing/" in self.path
                or self.path.startswith(("tests/", "bench/")) or "/tests/" in self.path)

    @property
    def is_code(self):
        if self.suffix in CODE_SUFFIXES or self.name == "CMakeLists.txt":
            return True
        return self.suffix == "" and self.text.startswith("#!")

    @property
    def in_src(self):
        return self.path.startswith("src/")

    def allows(self, line_number, rule):
        """True when the line, or the one above it, says why the rule does not hold there."""
        mark = f"tidy-allow({rule}): "
        nearby = self.lines[max(0, line_number - 2):line_number]
        return any(mark in line for line in nearby)


class Finding:
    def __init__(self, rule, path, line, message):
        self.rule, self.path, self.line, self.message = rule, path, line, message

    def __str__(self):
        return f"{self.path}:{self.line}: [{self.rule}] {self.message}"


def listed_paths(root):
    """Tracked and new files that git does not ignore; every file where there is no git."""
    if (root / ".git").exists():
        listing = subprocess.run(
            ["git", "-C", str(root), "ls-files", "-co", "--exclude-standard", "-z"],
            check=True, capture_output=True).stdout.decode()
        paths = [path for path in listing.split("\0") if path]
    else:
        paths = [str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()]
        paths = [path for path in paths if not path.startswith("build/")]
    return sorted(path for path in paths if (root / path).is_file())


def load(root):
    files = []
    for path in listed_paths(root):
        with open(root / path, "rb") as stream:
            if b"\0" in stream.read(4096):
                continue
        files.append(SourceFile(root, path))
    return files
