#!/bin/bash
# zeroth bench beside eager PyTorch: the same updates on the same shape, in turn, on this machine.
#   bench/compare_pytorch.sh [rounds] [mode...]      default: 5 rounds of lora_bf16 full_bf16 lora_fp32 full_fp32
# PyTorch (Debian's python3-torch) is tried with naive and with its own attention, where it has one, with and without
# jemalloc, once each; the fastest of these is what the rounds compare with. A try that takes longer than LIMIT seconds
# (600) is given up and does not count. Prints the median ratio of each mode with its range, and the peak memories.
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=${1:-5}
shift || true
modes=("$@")
[ ${#modes[@]} -gt 0 ] || modes=(lora_bf16 full_bf16 lora_fp32 full_fp32)
rows=4 tokens=256
limit=${LIMIT:-600}
zeroth=$PWD/build/release/zeroth
# Debian's PyTorch belongs to Debian's Python, whatever stands first in PATH.
python=/usr/bin/python3

missing=$(for package in python3-torch libjemalloc2; do
  dpkg-query -W -f='${db:Status-Status}' "$package" 2> /dev/null | grep -q '^installed$' || echo "$package"
done)
if [ -n "$missing" ]; then
  echo "installing $missing" >&2
  # shellcheck disable=SC2086  # one word per package
  apt-get update -q > /dev/null && apt-get install -q -y --no-install-recommends $missing > /dev/null
fi
jemalloc=$(ldconfig -p | sed -n 's/.*libjemalloc.so.2.*=> //p' | head -1)

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/config.json" << 'CONFIG'
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 576,
 "intermediate_size": 1536, "num_hidden_layers": 30, "num_attention_heads": 9,
 "num_key_value_heads": 3, "vocab_size": 49152, "max_position_embeddings": 2048,
 "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": true, "hidden_act": "silu"}
CONFIG

field() { $python -c 'import json, sys; print(json.loads(sys.stdin.readline() or sys.exit(1)).get(sys.argv[1], ""))' "$1"; }

pytorch() { # mode type attention malloc updates
  local preload=""
  [ "$4" = jemalloc ] && preload=$jemalloc
  LD_PRELOAD=$preload timeout "$limit" $python bench/pytorch_step.py "$folder/config.json" --mode "$1" --dtype "$2" \
    --attention "$3" --rows $rows --tokens $tokens --updates "$5"
}

ours() { # mode type
  "$zeroth" bench --model_config "$folder/config.json" --finetuning_type "$1" --lora_rank 16 --dtype "$2" \
    --rows $rows --tokens $tokens --bench_updates 5 --format json 2> "$folder/errors" ||
    { cat "$folder/errors" >&2; exit 1; }
}

lscpu | sed -n 's/^Model name: */machine: /p'
echo "processors: $(nproc)"
for mode in "${modes[@]}"; do
  what=${mode%_*} dtype=${mode#*_}
  best="" best_rate=0
  for attention in naive builtin; do
    for malloc in system jemalloc; do
      [ $malloc = jemalloc ] && [ -z "$jemalloc" ] && continue
      rate=$(pytorch "$what" "$dtype" $attention $malloc 2 | field tokens_per_second) || {
        echo "  $mode: PyTorch, $attention attention, $malloc malloc: not done in $limit s"
        continue
      }
      [ -n "$rate" ] || continue
      echo "  $mode: PyTorch, $attention attention, $malloc malloc: $rate tokens/s"
      if $python -c "import sys; sys.exit(not $rate > $best_rate)"; then
        best="$attention $malloc" best_rate=$rate
      fi
    done
  done
  [ -n "$best" ] || continue
  : > "$folder/$mode"
  for _ in $(seq "$rounds"); do
    # shellcheck disable=SC2086  # two words
    pytorch "$what" "$dtype" $best 3 >> "$folder/$mode"
    ours "$what" "$dtype" >> "$folder/$mode"
  done
  $python - "$folder/$mode" "$mode" "$best" << 'REPORT'
import json, statistics, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
theirs, ours = lines[0::2], lines[1::2]
ratios = [b["tokens_per_second"] / a["tokens_per_second"] for a, b in zip(theirs, ours)]
median = lambda name, of: statistics.median(line[name] for line in of)
print(f"{sys.argv[2]}: {statistics.median(ratios):.2f} x eager PyTorch {theirs[0]['torch']} "
      f"({min(ratios):.2f}-{max(ratios):.2f}, {len(ratios)} rounds; {sys.argv[3]})")
print(f"  tokens/s {median('tokens_per_second', ours):.0f} against {median('tokens_per_second', theirs):.0f}; "
      f"roofline {median('roofline', ours):.2f}; peak memory "
      f"{median('process_memory_bytes', ours) / 2**20:.0f} MiB against "
      f"{median('peak_memory_bytes', theirs) / 2**20:.0f} MiB "
      f"({median('process_memory_bytes', ours) / median('peak_memory_bytes', theirs):.2f})")
REPORT
done
