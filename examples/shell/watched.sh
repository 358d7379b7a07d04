#!/bin/bash
# A program that knows nothing of a pool: it leaves files out/checkpoint-N behind and starts from
# the newest. With `checkpoint.watch: out/checkpoint-*` in its task file the pool takes
# each one, once it is unchanged for 5 s, as a point where it may stop the program.
set -eu

out=${OUT:-out}
steps=${STEPS:-1000}
every=${EVERY:-100}
mkdir -p "$out"

step=0
for file in $(ls -v "$out" | grep '^checkpoint-[0-9]*$' || true); do
  # The last line says that the file is whole: a torn one is passed over.
  if [ "$(tail -n 1 "$out/$file")" = end ]; then step=$(head -n 1 "$out/$file"); fi
done

while [ "$step" -lt "$steps" ]; do
  sleep "${STEP_SECONDS:-0.1}"
  step=$((step + 1))
  echo "step $step"
  if [ $((step % every)) -eq 0 ]; then printf '%s\nend\n' "$step" > "$out/checkpoint-$step"; fi
done
