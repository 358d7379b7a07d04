# ./run test [--long[=PART,...]]: one release and one asan build, every check, one count at the end.
# The parts of --long are headers, tidy, tsan, fuzz, simulations and fresh; all of them by default.
# The kept result names the parts that were left out. --long-only=PART,... runs those parts alone;
# a part of it is also end-to-end (with 100 random kills).

. tools/run/lint.sh

RESULTS="$NEAP_ROOT/build/results"

# run_ctest PRESET NAME [CTEST ARGUMENT...]
run_ctest() {
  local folder name="$2"
  folder="$(build_folder "$1")"
  shift 2
  ctest --test-dir "$folder" -j "$(nproc)" --output-on-failure --no-tests=error \
    --output-junit "$RESULTS/$name.xml" "$@"
}

# run_python NAME FOLDER
run_python() {
  PYTHONPATH="$NEAP_ROOT/sdk/python" PYTHONDONTWRITEBYTECODE=1 \
    /usr/bin/python3 tools/python_tests.py --name "$1" --junit "$RESULTS/$1.xml" "$2"
}

run_e2e() {
  NEAP="$NEAP_ROOT/build/neap" PYTHONPATH="$NEAP_ROOT/sdk/python" PYTHONDONTWRITEBYTECODE=1 \
    /usr/bin/python3 tools/executable_tests.py --name e2e --junit "$RESULTS/e2e.xml" tests/e2e
}

# Each target starts from its seeds; what it finds stays in build/fuzz/corpus.
run_fuzzer() {
  local target="$1" corpus
  corpus="build/fuzz/corpus/$target"
  mkdir -p "$corpus" "build/fuzz/found"
  local seeds="tests/fuzz/corpus/${target%_fuzz}"
  [ -d "$seeds" ] || seeds=
  "build/fuzz/fuzz/$target" -max_total_time="${NEAP_FUZZ_SECONDS:-60}" -timeout=10 \
    -rss_limit_mb=2048 -print_final_stats=1 -artifact_prefix="build/fuzz/found/$target-" \
    "$corpus" $seeds
}

run_fuzzers() {
  local target
  try_step "build fuzz targets" build_preset fuzz fuzzers || return 0
  for target in build/fuzz/fuzz/*_fuzz; do
    if [ -x "$target" ]; then
      try_step "fuzz $(basename "$target" _fuzz)" run_fuzzer "$(basename "$target")" || true
    fi
  done
}

LONG_PARTS="end-to-end headers tidy tsan fuzz simulations fresh"

run_tsan() {
  if try_step "build tsan" build_preset tsan all; then
    try_step "tests under tsan" run_ctest tsan tsan || true
  fi
}

run_simulations() {
  NEAP_LONG=1 NEAP_SIM_SEEDS="${NEAP_SIM_SEEDS:-10000}" \
    try_step "long simulations" run_ctest release long -R "${NEAP_LONG_SUITES:-^suite_}" || true
}

run_fresh() {
  if [ "$(id -u)" -eq 0 ]; then
    mkdir -p docs/results
    try_step "fresh Debian 12" tests/fresh/run --times docs/results/fresh-debian.txt || true
  else
    say "fresh Debian 12 ... skipped: it needs root"
    printf 'fresh Debian 12\tneeds root\n' >>"$RESULTS/skipped.txt"
  fi
}

# run_long_checks PART...
run_long_checks() {
  local part
  for part in $LONG_PARTS; do
    if [[ " $* " != *" $part "* ]]; then
      say "$part ... left out"
      printf '%s\n' "$part" >>"$RESULTS/left-out.txt"
      continue
    fi
    case "$part" in
      end-to-end) [ -f "$RESULTS/e2e.xml" ] || try_step "end-to-end tests" run_e2e || true ;;
      headers) try_step "headers compile alone" check_headers_alone || true ;;
      tidy) STEP_TAIL=200 try_step "clang-tidy" check_clang_tidy || true ;;
      tsan) run_tsan ;;
      fuzz) run_fuzzers ;;
      simulations) run_simulations ;;
      fresh) run_fresh ;;
    esac
  done
}

# The words of --long=a,b as a list, all of them without one.
long_parts() {
  local word words
  [ "$1" != --long ] || { echo "$LONG_PARTS"; return; }
  words="${1#--long*=}"
  words="${words//,/ }"
  for word in $words; do
    [[ " $LONG_PARTS " == *" $word "* ]] ||
      die "--long: no part is called $word; there are: $LONG_PARTS"
  done
  echo "$words"
}

run_base_checks() {
  try_step "formatting" check_format || true
  try_step "shell syntax" check_scripts || true
  if try_step "build release" build_preset release all; then
    try_step "tests" run_ctest release release || true
    if [ -d tests/e2e ]; then try_step "end-to-end tests" run_e2e || true; fi
  fi
  if try_step "build asan" build_preset asan all; then
    try_step "tests under asan" run_ctest asan asan || true
  fi
  if [ -d tests/python ]; then try_step "python tests" run_python python tests/python || true; fi
  if [ -d sdk/python/tests ]; then try_step "SDK tests" run_python sdk sdk/python/tests || true; fi
  try_step "tests of the examples" run_python examples examples/tests || true
  try_step "tests of the language model" run_python llm examples/llm/tests || true
}

run_tests() {
  local long=no base=yes status=0 parts=""
  case "${1:-}" in
    "") ;;
    --long | --long=* | --long-only=*)
      long=yes
      case "$1" in --long-only=*) base=no ;; esac
      parts="$(long_parts "$1")"
      export NEAP_KILLS="${NEAP_KILLS:-100}"
      ;;
    *) die "usage: ./run test [--long[=PART,...] | --long-only=PART,...]" ;;
  esac
  need_packages build demo test $([ "$long" = yes ] && echo long)
  rm -rf "$RESULTS"
  mkdir -p "$RESULTS"
  : >"$RESULTS/steps.txt"
  export STEP_RECORD="$RESULTS/steps.txt"

  if [ "$base" = yes ]; then
    run_base_checks
  else
    try_step "build release" build_preset release all || true
  fi
  if [ "$long" = yes ]; then run_long_checks $parts; fi

  /usr/bin/python3 tools/count_results.py "$RESULTS" >"$RESULTS/summary.txt" || status=1
  cat "$RESULTS/summary.txt"
  if [ "$long" = yes ]; then
    mkdir -p docs/results
    /usr/bin/python3 tools/long_result.py "$RESULTS" >docs/results/long-test.txt
    say "written: docs/results/long-test.txt"
  fi
  return "$status"
}
