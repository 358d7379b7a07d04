# Checks without running the product.

check_format() { cpp_files | xargs -0r clang-format-14 --dry-run -Werror; }

# clang-tidy reads the database of the tsan build: that compiler's own flags, and each file for
# itself, which release and asan do not have. One file a process.
check_clang_tidy() {
  cmake --preset tsan
  # The precompiled header has to exist before a test can be parsed.
  ninja -C build/tsan neap_test_pch
  cpp_files | grep -z '\.cpp$' | grep -zv -e _fuzz.cpp -e _bench.cpp |
    xargs -0 -n 1 -P "$(nproc)" clang-tidy-19 --quiet -p build/tsan
}

check_headers_alone() { build_preset release all_verify_interface_header_sets; }

check_scripts() {
  local script
  for script in run .ci/run tools/run/*.sh tests/fresh/run tests/show/lib/*.sh; do
    bash -n "$script"
  done
}

run_lint() {
  local failed=0 group=()
  [ "${1:-}" = --full ] && group=(long)
  need_packages build test "${group[@]}"
  STEP_TAIL=100 try_step "repository lint" /usr/bin/python3 tools/tidy || failed=1
  try_step "formatting" check_format || failed=1
  try_step "shell syntax" check_scripts || failed=1
  if [ "${1:-}" = --full ]; then
    try_step "headers compile alone" check_headers_alone || failed=1
    STEP_TAIL=200 try_step "clang-tidy" check_clang_tidy || failed=1
  fi
  return "$failed"
}
