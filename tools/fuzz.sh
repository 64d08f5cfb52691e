#!/usr/bin/env bash
# Fuzzes each target for some seconds, with coverage and AddressSanitizer.
#
#   tools/fuzz.sh [SECONDS [TARGET...]]        default: 20 seconds, all targets of dev/fuzz/fuzz_targets
#
# Requires a C++ compiler. Sanitizers are an unstable feature: a nightly toolchain is used if there is one, otherwise the stable one
# with RUSTC_BOOTSTRAP=1, which permits unstable features. cargo-fuzz is not required, but works with nightly:
# cargo +nightly fuzz run TARGET. Each run starts with dev/fuzz/seeds. New inputs are written to dev/fuzz/corpus,
# inputs that crash to dev/fuzz/artifacts; git ignores both.
set -euo pipefail

cd "$(dirname "$0")/.."
target=x86_64-unknown-linux-gnu
seconds=${1:-20}
[ $# -eq 0 ] || shift

cargo=(cargo +nightly)
if ! RUSTUP_AUTO_INSTALL=0 "${cargo[@]}" --version >/dev/null 2>&1; then
    export RUSTC_BOOTSTRAP=1
    cargo=(cargo)
fi

targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
    for file in dev/fuzz/fuzz_targets/*.rs; do
        targets+=("$(basename "$file" .rs)")
    done
fi

# The instrumentation that cargo-fuzz uses: counters at every edge, and the operands of comparisons.
coverage=(-Cpasses=sancov-module)
for argument in coverage-level=4 coverage-inline-8bit-counters coverage-pc-table coverage-trace-compares; do
    coverage+=("-Cllvm-args=-sanitizer-$argument")
done
unset RUSTC_WRAPPER CARGO_ENCODED_RUSTFLAGS CARGO_BUILD_TARGET
# The target `provider` sets these variables itself.
unset "${!LOCKSTEP_@}"
export RUSTFLAGS="${coverage[*]} -Zsanitizer=address -Ccodegen-units=1 --cfg fuzzing"
folder=${CARGO_TARGET_DIR:-$PWD/dev/fuzz/target}/fuzz
"${cargo[@]}" build --locked --release --manifest-path dev/fuzz/Cargo.toml --target "$target" --target-dir "$folder" --bins

for name in "${targets[@]}"; do
    mkdir -p "dev/fuzz/corpus/$name" "dev/fuzz/artifacts/$name" "dev/fuzz/seeds/$name"
    echo "fuzz: $name for $seconds s"
    log=$(mktemp)
    # Inputs have only some KiB, so that the limit on memory detects an allocation of a length that is only stated in a file.
    limit=2048
    [ "$name" != parquet ] || limit=64
    if ! "$folder/$target/release/$name" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -malloc_limit_mb="$limit" -print_final_stats=1 \
        -artifact_prefix="dev/fuzz/artifacts/$name/" "dev/fuzz/corpus/$name" "dev/fuzz/seeds/$name" >"$log" 2>&1; then
        tail -n 60 "$log" >&2
        echo "fuzz: $name failed; the input is in dev/fuzz/artifacts/$name" >&2
        rm -f "$log"
        exit 1
    fi
    grep -E 'stat::number_of_executed_units|cov:.*DONE|DONE.*cov:' "$log" | tail -n 2
    rm -f "$log"
done
