# Progress in one line a step; what a step prints goes to a log, shown only when it fails.

LOG_DIR="${NEAP_ROOT:?}/build/log"

say() { printf '==> %s\n' "$*"; }
die() { printf 'run: %s\n' "$*" >&2; exit 1; }

# record NAME STATUS SECONDS: remembered for the summary of `./run test`.
record() {
  if [ -n "${STEP_RECORD:-}" ]; then printf '%s\t%s\t%s\n' "$1" "$2" "$3" >>"$STEP_RECORD"; fi
}

# try_step NAME COMMAND...: runs it with its output in a log; returns its status.
try_step() {
  local name="$1" log status=0 begin=$SECONDS
  shift
  mkdir -p "$LOG_DIR"
  log="$LOG_DIR/${name//[^A-Za-z0-9_.-]/-}.log"
  printf '==> %s ...' "$name"
  # A process group of its own, so that an interrupt ends all that the step started.
  set -m
  ( set +m -e; "$@" ) </dev/null >"$log" 2>&1 &
  set +m
  STEP_PID=$!
  wait "$STEP_PID" || status=$?
  STEP_PID=
  record "$name" "$status" "$((SECONDS - begin))"
  if [ "$status" -eq 0 ]; then
    printf ' ok (%d s)\n' "$((SECONDS - begin))"
  else
    printf ' FAILED with status %d (%d s)\n' "$status" "$((SECONDS - begin))"
    # The lines that say what broke, wherever they are, and then the end.
    grep -nE '(^|[^a-z_])(error|ERROR):|^FAILED:|\*\*\*(Failed|Timeout|Exception)' "$log" |
      head -n 30 | cut -c1-300 | sed 's/^/    /' || true
    printf '    ...\n'
    tail -n "${STEP_TAIL:-25}" "$log" | cut -c1-300 | sed 's/^/    /'
    printf '    whole log: %s\n' "${log#"$NEAP_ROOT"/}"
  fi
  return "$status"
}

# step NAME COMMAND...: the same, and a failure ends the run.
step() { try_step "$@" || exit 1; }

# An interrupted run ends the step it was in.
STEP_PID=
on_interrupt() {
  if [ -n "$STEP_PID" ]; then kill -- -"$STEP_PID" 2>/dev/null || true; fi
  exit 130
}
trap on_interrupt INT TERM

cpp_files() {
  { git ls-files -co --exclude-standard -z -- '*.cpp' '*.h' 2>/dev/null ||
    find src tests bench \( -name '*.cpp' -o -name '*.h' \) -print0; } |
    while IFS= read -r -d '' file; do
      if [ -f "$file" ]; then printf '%s\0' "$file"; fi
    done
}

show_names() {
  find tests/show -maxdepth 1 -type f -perm -u+x -printf '%f ' 2>/dev/null
}
