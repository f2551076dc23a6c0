#!/bin/bash
# Proof: a model of 1.1 billion parameters (TinyLlama's shape), random weights, is trained whole with
# AdamW for two updates with all of its state in files, while all ranks together stay under 6 GiB of
# memory (PSS, and dirty page cache beside it); and with LoRA on two ranks under 4.5 GiB.
#   tests/slow/billion_parameters.sh [folder with 60 GB free] [ranks of the full run]
# Prints the peaks and ends with 1 if one is too high.
set -euo pipefail
folder=${1:-/tmp}/zeroth-billion.$$
ranks=${2:-1}
zeroth=$(cd "$(dirname "$0")/../.." && pwd)/build/release/zeroth
mkdir -p "$folder/disk"
trap 'rm -rf "$folder"' EXIT
cd "$folder"

cat > config.json <<'CONFIG'
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 2048,
 "intermediate_size": 5632, "num_hidden_layers": 22, "num_attention_heads": 32,
 "num_key_value_heads": 4, "vocab_size": 32000, "max_position_embeddings": 2048,
 "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": false, "hidden_act": "silu"}
CONFIG
{
  echo '['
  for i in $(seq 1 40); do
    [ "$i" = 1 ] || echo ','
    echo "{\"instruction\": \"Count from $i to ten.\", \"input\": \"\", \"output\": \"$(seq -s ' ' "$i" $((i + 20)))\"}"
  done
  echo ']'
} > rows.json

"$zeroth" init-model --model_config config.json --bf16 --output_dir model
"$zeroth" train-tokenizer rows.json --vocab_size 300 --output_dir tokenizer
cp tokenizer/tokenizer* model

# The sum over a process and all that it started, in KiB.
pss_of() {
  local total=0 pid
  for pid in "$@"; do
    local own
    own=$(awk '/^Pss:/ {print $2}' "/proc/$pid/smaps_rollup" 2> /dev/null || true)
    total=$((total + ${own:-0}))
    local children
    children=$(cat /proc/"$pid"/task/*/children 2> /dev/null || true)
    # shellcheck disable=SC2086
    [ -z "$children" ] || total=$((total + $(pss_of $children)))
  done
  echo "$total"
}

dirty() { awk '/^(Dirty|Writeback):/ {sum += $2} END {print sum}' /proc/meminfo; }

# measured NAME LIMIT_MIB WORDS...: runs `zeroth WORDS` and watches it.
failed=0
measured() {
  local name=$1 limit=$2
  shift 2
  sync
  local before peak=0 peak_pss=0 peak_dirty=0 start
  before=$(dirty)
  start=$(date +%s)
  "$zeroth" "$@" > "$name.out" 2> "$name.log" &
  local run=$!
  while kill -0 "$run" 2> /dev/null; do
    local pss more
    pss=$(pss_of "$run")
    more=$(($(dirty) - before))
    more=$((more > 0 ? more : 0))
    peak_pss=$((pss > peak_pss ? pss : peak_pss))
    peak_dirty=$((more > peak_dirty ? more : peak_dirty))
    peak=$((pss + more > peak ? pss + more : peak))
    sleep 0.2
  done
  local code=0
  wait "$run" || code=$?
  cat "$name.log"
  echo "$name: exit code $code, $(($(date +%s) - start)) s; at the most $((peak / 1024)) MiB of PSS" \
    "and dirty page cache together (PSS $((peak_pss / 1024)), dirty $((peak_dirty / 1024)))," \
    "limit $limit MiB"
  if [ "$code" != 0 ] || [ $((peak / 1024)) -gt "$limit" ]; then
    failed=1
  fi
}

common=(--model_name_or_path model --dataset rows.json --template alpaca --cutoff_len 128 --bf16
  --per_device_train_batch_size 1 --gradient_accumulation_steps 1 --max_steps 2 --save_strategy no
  --gradient_checkpointing --overwrite_output_dir)
files=(--zero_stage 3 --zero_optimization.offload_optimizer.device=nvme
  --zero_optimization.offload_optimizer.nvme_path=disk
  --zero_optimization.offload_param.device=nvme --zero_optimization.offload_param.nvme_path=disk)

measured full 6144 train "${common[@]}" "${files[@]}" --finetuning_type full --ranks "$ranks" \
  --output_dir full
grep '"kind":"update"' full/metrics.jsonl
measured lora 4608 train "${common[@]}" --finetuning_type lora --ranks 2 --output_dir lora
exit "$failed"
