# Debian packages: nothing is asked of apt when all are there.

missing_packages() {
  local group name rest wanted=" $* "
  while read -r group name rest; do
    [[ "$group" == \#* || -z "$group" || "$wanted" != *" $group "* ]] && continue
    if [ "$(dpkg-query -W -f='${db:Status-Status}' "$name" 2>/dev/null)" != installed ]; then
      printf '%s\n' "$name"
    fi
  done <tools/packages.txt
}

# as_root COMMAND...
as_root() {
  if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo -- "$@"; fi
}

# apt_get ARGUMENT...: waits for a lock that another apt holds. The packages may bring services
# (haproxy): they are installed, not started, because neap starts its own.
apt_get() {
  local attempt
  for attempt in 1 2 3 4 5 6; do
    if as_root env DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 \
      apt-get -q -y -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$@"; then
      return 0
    fi
    echo "apt-get failed (attempt $attempt of 6)"
    sleep $((attempt * 5))
  done
  return 1
}

install_packages() {
  local policy=/usr/sbin/policy-rc.d made_policy=no status=0
  apt_get update
  if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null
    as_root chmod 755 "$policy"
    made_policy=yes
  fi
  apt_get install --no-install-recommends "$@" || status=$?
  if [ "$made_policy" = yes ]; then as_root rm -f "$policy"; fi
  return "$status"
}

# need_packages GROUP...
need_packages() {
  local missing
  command -v dpkg-query >/dev/null ||
    die "this is not Debian; tools/packages.txt says what is needed"
  mapfile -t missing < <(missing_packages "$@")
  [ "${#missing[@]}" -eq 0 ] && return
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null ||
      die "not root and no sudo: as root, run apt-get install ${missing[*]}"
    # The password, if any, is asked here and not inside a step whose output goes to a log.
    sudo -v || die "sudo refused: as root, run apt-get install ${missing[*]}"
  fi
  step "install ${#missing[@]} Debian packages" install_packages "${missing[@]}"
}

# llama.cpp, as npm has it built for Node 20 and newer: a second engine for tests, in build/llama
# and nowhere else. Returns 1 where npm cannot install it; the reason is then in build/llama/why.
LLAMA_VERSION=3.21.1
install_llama() {
  local folder=build/llama module=build/llama/node_modules/node-llama-cpp
  [ -e "$folder/whole" ] && [ -d "$module" ] && return
  mkdir -p "$folder"
  rm -f "$folder/why" "$folder/whole"
  if ! command -v npm >/dev/null || ! command -v node >/dev/null; then
    echo "there is no npm" >"$folder/why"
  elif [ "$(uname -sm)" != "Linux x86_64" ]; then
    echo "npm has no build of it for $(uname -sm)" >"$folder/why"
  elif [ "$(node -p 'process.versions.node.split(".")[0]')" -lt 20 ]; then
    echo "node $(node --version) is older than 20" >"$folder/why"
  elif ! npm install --prefix "$folder" -E "node-llama-cpp@$LLAMA_VERSION" \
    "@node-llama-cpp/linux-x64@$LLAMA_VERSION" --omit=optional --ignore-scripts --no-audit \
    --no-fund --fetch-retries=1 --fetch-timeout=60000 >"$folder/npm.log" 2>&1; then
    echo "npm cannot install it: $(grep -m1 'npm error' "$folder/npm.log" | cut -c1-150)" \
      >"$folder/why"
  else
    : >"$folder/whole"
    return
  fi
  cat "$folder/why"
  return 1
}
