#!/bin/bash
# The contract without an SDK: SIGTERM means "write a checkpoint and exit with code 75".
# Counts to STEPS (1000), one step each STEP_SECONDS (0.1).
set -eu

dir=${NEAP_CHECKPOINT_DIR:-checkpoints}
steps=${STEPS:-1000}
mkdir -p "$dir"

# Written aside, synced, renamed, directory synced: then it counts.
save() {
  echo "$step" > "$dir/.state.tmp"
  sync "$dir/.state.tmp"
  mv "$dir/.state.tmp" "$dir/state"
  sync "$dir"
}

step=0
[ -e "$dir/state" ] && step=$(cat "$dir/state")
asked=
trap 'asked=yes' TERM

while [ "$step" -lt "$steps" ]; do
  sleep "${STEP_SECONDS:-0.1}" || true # a signal to the whole group ends the sleep as well
  step=$((step + 1))
  echo "step $step"
  if [ -n "$asked" ]; then
    save
    exit 75
  fi
  if [ $((step % 100)) -eq 0 ]; then save; fi
done
save
