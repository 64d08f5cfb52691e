#!/usr/bin/env bash
# Encryption of a file in memory: lockstep compared with openssl, age and pyca (to /dev/null), and with cp (to a file).
#
#   tools/bench_files.sh LOCKSTEP [--size SIZE] [--rounds N] [--dir DIR] [--threads N]
#
#   --size     of the file: 512M, 2G, ... (default 2G)
#   --rounds   number of counted rounds (default 5), after one warm-up round
#   --dir      folder of the files: a tmpfs with room for three times the size (default /dev/shm)
#   --threads  number of threads of lockstep (default: all)
#
# Every round runs every contender once, and each round begins with a different contender. Times are those of the whole program, except
# pyca's, which exclude the start of Python. The table is Markdown: medians, with minimum and maximum. Contenders that are not
# installed are named and omitted; age is Debian's package `age`.
set -euo pipefail
export LC_ALL=C

tools=$(cd "$(dirname "$0")" && pwd)

die() {
    echo "bench-files: $*" >&2
    exit 2
}
note() {
    echo "bench-files: $*" >&2
}

lockstep='' size=2G rounds=5 dir=/dev/shm threads=()
while [ $# -gt 0 ]; do
    case $1 in
        --size | --rounds | --dir | --threads)
            [ $# -ge 2 ] || die "$1 needs a value"
            case $1 in
                --size) size=$2 ;;
                --rounds) rounds=$2 ;;
                --dir) dir=$2 ;;
                --threads) threads=(--threads "$2") ;;
            esac
            shift 2
            ;;
        -h | --help)
            sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//p}' "$0"
            exit 0
            ;;
        -*) die "no option $1: see --help" ;;
        *)
            [ -z "$lockstep" ] || die "one program at a time: see --help"
            lockstep=$1
            shift
            ;;
    esac
done
[ -n "$lockstep" ] || die "whose speed? give the path of lockstep, such as target/release/lockstep"
lockstep=$(realpath "$lockstep")
[ -x "$lockstep" ] || die "$lockstep is no program"
bytes=$(numfmt --from=iec "$size" 2>/dev/null) || die "--size $size is no size: give one such as 512M or 2G"
[ "$bytes" -ge $((1 << 20)) ] || die "--size $size: a megabyte is the least that can be timed"
[[ $rounds =~ ^[1-9][0-9]*$ ]] || die "--rounds $rounds: give a number from 1"

# The file, the destination of the previous round, and the temporary file that replaces it.
wanted=$((3 * bytes + bytes / 50 + (256 << 20)))
available=$(($(awk '/^MemAvailable/ { print $2 }' /proc/meminfo) * 1024))
free=$(df --output=avail -B1 "$dir" | tail -n 1)
human() {
    numfmt --to=iec-i --suffix=B --format=%.1f "$1"
}
[ "$available" -ge "$wanted" ] || die "needs $(human "$wanted") of memory, there are $(human "$available"): take a smaller --size"
[ "$free" -ge "$wanted" ] || die "needs $(human "$wanted") in $dir, there are $(human "$free"): take a smaller --size, or another --dir"
kind=$(stat -f -c %T "$dir")
[ "$kind" = tmpfs ] || note "$dir is $kind, not tmpfs: files written there are measured with its disk"

folder=$(mktemp -d "$dir/lockstep-bench.XXXXXX")
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM
input=$folder/input destination=$folder/destination key=$folder/key results=$folder/results
head -c "$bytes" /dev/urandom >"$input"
"$lockstep" keygen -o "$key"
openssl_key=$(od -An -tx1 -N32 /dev/urandom | tr -d ' \n')
openssl_iv=$(od -An -tx1 -N16 /dev/urandom | tr -d ' \n')

# Each function sets `took`, in seconds.
took=
timed() {
    local start=$EPOCHREALTIME
    "$@"
    took=$(awk -v from="$start" -v to="$EPOCHREALTIME" 'BEGIN { printf "%.6f", to - from }')
}
null_lockstep() { timed "$lockstep" encrypt -q -k "$key" "${threads[@]}" "$input" >/dev/null; }
null_lockstep_1() { timed "$lockstep" encrypt -q -k "$key" --threads 1 "$input" >/dev/null; }
null_openssl() { timed openssl enc -aes-256-ctr -K "$openssl_key" -iv "$openssl_iv" -in "$input" >/dev/null; }
null_age() { timed age -r "$recipient" "$input" >/dev/null; }
null_pyca() { took=$("$tools/bench_pyca.py" --file "$input"); }
null_pyca_update() { took=$("$tools/bench_pyca.py" --file "$input" --update); }
file_lockstep() { timed "$lockstep" encrypt -q -k "$key" "${threads[@]}" -f -o "$destination" "$input"; }
# The time includes the truncation of the destination, as for cp.
file_lockstep_stdout() { timed sh -c '"$@" >"$0"' "$destination" "$lockstep" encrypt -q -k "$key" "${threads[@]}" "$input"; }
file_cp() { timed cp --reflink=never "$input" "$destination"; }

declare -A label=(
    [null_lockstep]="lockstep encrypt -k${threads:+ ${threads[*]}}"
    [null_lockstep_1]="lockstep encrypt -k --threads 1"
    [null_openssl]="openssl enc -aes-256-ctr"
    [null_age]="age -r"
    [null_pyca]="pyca Cobblestone-256, 4 MiB update_into"
    [null_pyca_update]="pyca Cobblestone-256, 4 MiB update"
    [file_lockstep]="lockstep encrypt -k -f -o FILE${threads:+ ${threads[*]}}"
    [file_lockstep_stdout]="lockstep encrypt -k > FILE${threads:+ ${threads[*]}}"
    [file_cp]="cp --reflink=never"
)
to_null=(null_lockstep null_lockstep_1)
versions=("$("$lockstep" --version)" "$(cp --version | head -n 1)")
missing=()
if command -v openssl >/dev/null; then
    to_null+=(null_openssl)
    versions+=("$(openssl version | sed 's/ (.*//')")
else
    missing+=("openssl: not installed (Debian: apt-get install openssl)")
fi
if command -v age >/dev/null && command -v age-keygen >/dev/null; then
    recipient=$(age-keygen 2>/dev/null | sed -n 's/^# public key: //p')
    to_null+=(null_age)
    versions+=("age $(age --version)")
else
    missing+=("age: not installed (Debian: apt-get install age)")
fi
if null_pyca 2>"$folder/pyca" && [ -n "$took" ]; then
    to_null+=(null_pyca null_pyca_update)
    python=${CARGO_TARGET_DIR:-$tools/../target}/pyca-venv/bin/python
    [ -x "$python" ] || python=python3
    versions+=("pyca cryptography $("$python" -c 'import cryptography; print(cryptography.__version__)')")
else
    missing+=("pyca: $(tail -n 1 "$folder/pyca")")
fi
for line in "${missing[@]}"; do
    note "NOT MEASURED: $line"
done

# One group of contenders, alternating.
measure() {
    local group=$1 round i one
    shift
    local contenders=("$@")
    for ((round = 0; round <= rounds; round++)); do
        for ((i = 0; i < $#; i++)); do
            one=${contenders[(round + i) % $#]}
            "$one"
            [ "$round" = 0 ] || printf '%s\t%s\n' "$one" "$took" >>"$results"
        done
        note "$group: round $round of $rounds"
    done
}
measure null "${to_null[@]}"

# The warm-up writes the destination; its results are checked.
file_lockstep
"$lockstep" decrypt -q -k "$key" "$destination" | cmp - "$input" || die "lockstep does not give back what was encrypted"
measure file file_lockstep file_lockstep_stdout file_cp

# A table in which the first contender is compared with each of the others.
table() {
    local one
    echo "| $1 | seconds, median (least to most) | GB/s | lockstep takes |"
    echo "|---|---|---|---|"
    for one in "${@:2}"; do
        printf '%s\t%s\t' "$one" "${label[$one]}"
        awk -v one="$one" '$1 == one { print $2 }' "$results" | sort -n | tr '\n' ' '
        echo
    done | awk -F '\t' -v bytes="$bytes" -v first="$2" '
        {
            n = split($3, t, " ")
            middle[$1] = n % 2 ? t[(n + 1) / 2] : (t[n / 2] + t[n / 2 + 1]) / 2
            least[$1] = t[1]; most[$1] = t[n]; name[$1] = $2; order[NR] = $1
        }
        END {
            for (i = 1; i <= NR; i++) {
                c = order[i]
                ratio = c == first ? "" : sprintf("%.2f x its time", middle[first] / middle[c])
                printf "| `%s` | %.3f (%.3f to %.3f) | %.2f | %s |\n", name[c], middle[c], least[c], most[c], bytes / middle[c] / 1e9, ratio
            }
        }'
    echo
}

echo "## Files, $(date +%F)"
echo
processor=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
echo "${processor:-$(uname -m)}, $(nproc) processors, $(human $(($(awk '/^MemTotal/ { print $2 }' /proc/meminfo) * 1024))) of memory, $(uname -sr)."
joined=$(printf '%s; ' "${versions[@]}")
echo "${joined%; }."
echo "A file of $(human "$bytes") of random bytes on $kind; $rounds rounds, interleaved, after one to warm up."
echo
table "to /dev/null" "${to_null[@]}"
table "to a file on $kind, written before" file_lockstep file_lockstep_stdout file_cp
for line in "${missing[@]}"; do
    echo "Not measured: $line"
done
