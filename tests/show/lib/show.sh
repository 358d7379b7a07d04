# Shows in a shell: source this file.
#   show_line WHAT FIGURE TARGET ok|short
#   show_check WHAT TARGET COMMAND...   ok when the command succeeds; its last line is the figure
#   exit "$(show_status)"

SHOW_LIB="$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")"
SHOW_STATUS=0

show_line() {
  local status=0
  /usr/bin/python3 "$SHOW_LIB/show.py" "$@" || status=$?
  if [ "$status" -ne 0 ]; then SHOW_STATUS=1; fi
}

show_check() {
  local what="$1" target="$2" output verdict=ok
  shift 2
  output="$("$@" 2>&1)" || verdict=short
  show_line "$what" "$(printf '%s\n' "$output" | tail -n 1)" "$target" "$verdict"
}

show_status() { echo "$SHOW_STATUS"; }
