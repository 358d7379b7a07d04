# The builds. Each preset has its own folder, so that they do not undo each other.

build_folder() { if [ "$1" = release ]; then echo build; else echo "build/$1"; fi; }

# build_preset PRESET TARGET...
build_preset() {
  local preset="$1" folder
  shift
  folder="$(build_folder "$preset")"
  cmake --preset "$preset"
  # One run shows every file that does not compile.
  ninja -C "$folder" -k 0 "$@"
}

build_product() {
  local targets=(neap)
  cmake --preset release
  # The supervisor is a target from the first of its files on.
  if ninja -C build -t targets all | grep -q '^neap-supervise:'; then targets+=(neap-supervise); fi
  ninja -C build "${targets[@]}"
}

build_benches() { build_preset release neap benches; }
