"""./run show NAME: runs tests/show/NAME, or repeats what it printed for this very commit.

The lines of a clean tree are kept in build/show/<commit>.json. Exits 1 when any falls short, when
the show fails, or when it prints no line at all.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/show/lib"))
from show import OK, format_line  # noqa: E402 (the path comes first)


def clean_commit(root):
    """The commit of a clean tree, None for any other tree."""
    def git(*arguments):
        return subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True)
    commit = git("rev-parse", "HEAD")
    status = git("status", "--porcelain")
    if commit.returncode != 0 or status.returncode != 0 or status.stdout.strip():
        return None
    return commit.stdout.strip()


def run_show(script):
    """(lines, exit status) of the script; its lines are printed as they come."""
    with tempfile.NamedTemporaryFile("r", suffix=".jsonl", encoding="utf-8") as collected:
        environment = {**os.environ, "NEAP_SHOW_LINES": collected.name}
        status = subprocess.run([str(script)], env=environment, cwd=script.parents[2]).returncode
        return [json.loads(line) for line in collected], status


def cached_lines(path, name):
    try:
        return json.loads(path.read_text(encoding="utf-8")).get(name)
    except (OSError, ValueError):
        return None


def store(path, name, lines):
    try:
        shows = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        shows = {}
    shows[name] = lines
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_suffix(".new")
    aside.write_text(json.dumps(shows, indent=1), encoding="utf-8")
    aside.replace(path)


def main(name, root=ROOT):
    script = root / "tests/show" / name
    if "/" in name or not (script.is_file() and os.access(script, os.X_OK)):
        print(f"run: no show named {name} in tests/show", file=sys.stderr)
        return 2
    commit = clean_commit(root)
    cache = root / "build/show" / f"{commit}.json"
    lines, status = (cached_lines(cache, name) if commit else None), 0
    if lines:
        for line in lines:
            print(format_line(line))
        print(f"(as measured on this commit, {commit[:12]})")
    else:
        lines, status = run_show(script)
        # A show that broke off is not worth keeping; one that fell short is.
        if commit and lines and status in (0, 1) and clean_commit(root) == commit:
            store(cache, name, lines)
    if not lines:
        print(f"run: the show {name} printed no line", file=sys.stderr)
        return 1
    return 0 if status == 0 and all(line["verdict"] == OK for line in lines) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
