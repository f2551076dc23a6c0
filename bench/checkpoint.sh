#!/bin/bash
# How long a checkpoint of a 135M model (SmolLM's shape, all weights trained in bf16) takes to write
# and to read, beside dd on the same disk with the same bytes, in turn.
#   bench/checkpoint.sh [folder] [rounds]
# What is read goes into memory in both cases. As root the page cache is dropped before each round's
# parts; else both read what is cached.
set -euo pipefail
folder=${1:-/tmp}/zeroth-checkpoint-bench.$$
rounds=${2:-5}
zeroth=$(cd "$(dirname "$0")/.." && pwd)/build/release/zeroth
mkdir -p "$folder"
trap 'rm -rf "$folder"' EXIT
cd "$folder"

cat > config.json <<'CONFIG'
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 576,
 "intermediate_size": 1536, "num_hidden_layers": 30, "num_attention_heads": 9,
 "num_key_value_heads": 3, "vocab_size": 49152, "max_position_embeddings": 2048,
 "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": true, "hidden_act": "silu"}
CONFIG
{
  echo '['
  for i in $(seq 1 20); do
    [ "$i" = 1 ] || echo ','
    echo "{\"instruction\": \"Count from $i.\", \"output\": \"$(seq -s ' ' "$i" $((i + 9)))\"}"
  done
  echo ']'
} > rows.json
"$zeroth" init-model --model_config config.json --bf16 --output_dir model 2> /dev/null > /dev/null
"$zeroth" train-tokenizer rows.json --vocab_size 300 --output_dir tokenizer 2> /dev/null > /dev/null
cp tokenizer/tokenizer* model

train() {
  "$zeroth" train --model_name_or_path model --bf16 --finetuning_type full --dataset rows.json \
    --template alpaca --cutoff_len 64 --per_device_train_batch_size 1 --lr_scheduler_type constant \
    --save_total_limit 1 --output_dir out "$@" 2>&1
}

drop_cache() {
  sync
  if [ "$(id -u)" = 0 ]; then echo 3 > /proc/sys/vm/drop_caches; fi
}

seconds() { # of a command
  local start end
  start=$(date +%s.%N)
  "$@" > /dev/null 2> /dev/null
  end=$(date +%s.%N)
  awk -v a="$start" -v b="$end" 'BEGIN {printf "%.3f", b - a}'
}

# At one go, into memory that nobody has touched before, as a process that starts has it.
read_all() { dd if="$(echo out/checkpoint-*/state-*)" of=/dev/null bs=2G count=1 iflag=fullblock; }

write_as_much() { dd if=/dev/zero of=dd.bin bs=4M count=$(($1 / 4194304 + 1)) conv=fsync; }

train --max_steps 1 > log
bytes=$(du -sb out/checkpoint-1 | cut -f1)
echo "a checkpoint of $((bytes / 1000000)) MB; seconds: save, dd conv=fsync, load, dd of the state into memory"
for round in $(seq 1 "$rounds"); do
  drop_cache
  reads=$(seconds read_all)
  drop_cache
  train --max_steps $((round + 1)) --resume_from_checkpoint latest > log
  save=$(sed -n 's/.*saved in \([0-9.]*\) s.*/\1/p' log)
  load=$(sed -n 's/.*loaded in \([0-9.]*\) s.*/\1/p' log)
  rm -f dd.bin
  drop_cache
  writes=$(seconds write_as_much "$bytes")
  echo "$save $writes $load $reads"
done | tee rounds

median() { sort -n | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}'; }
for kind in "save 1 2 1.3" "load 3 4 1.5"; do
  set -- $kind
  awk -v a="$2" -v b="$3" '{print $a / $b}' rounds | sort -n > ratios
  echo "$1: $(median < ratios)x dd (from $(head -1 ratios) to $(tail -1 ratios)); wanted: $4"
done
