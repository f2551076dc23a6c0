#!/usr/bin/env bash
# Makes everything that examples/quickstart holds, from nothing but this repository: the instruction data,
# the tokenizer and the base model. Can be run again; takes about ten minutes on two cores.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
here=$root/examples/quickstart
build=$root/build/release
zeroth=$build/zeroth
work=$build/quickstart-make # pre-training text and what stands between two steps

num_documents=150000
pretrain_steps=2400

cmake --build "$build" --target zeroth zeroth-worker zeroth_quickstart_data

rm -rf "$work"
mkdir -p "$work" "$here/data" "$here/base"

echo "== 1/4 data"
"$build/examples/quickstart/zeroth_quickstart_data" --documents "$num_documents" "$work"
cp "$work"/train.json "$work"/validation.json "$work"/heldout.json "$here/data/"

echo "== 2/4 tokenizer"
"$zeroth" train-tokenizer "$work/pretrain.jsonl" --vocab_size 608 --output_dir "$work/start"

echo "== 3/4 random weights"
"$zeroth" init-model --model_config "$here/base_config.json" --seed 1 --output_dir "$work/random"
cp "$work"/random/* "$work/start/"

echo "== 4/4 pre-training"
"$zeroth" train --model_name_or_path "$work/start" --stage pt --finetuning_type full \
  --dataset "$work/pretrain.jsonl" --cutoff_len 128 --per_device_train_batch_size 16 \
  --max_steps "$pretrain_steps" --learning_rate 3e-3 --lr_scheduler_type cosine --warmup_steps 100 \
  --weight_decay 0.05 --adam_beta2 0.99 --logging_steps 50 --output_dir "$work/base"

for file in config.json model.safetensors tokenizer.json tokenizer_config.json special_tokens_map.json \
  generation_config.json; do
  if [[ -f $work/base/$file ]]; then
    cp "$work/base/$file" "$here/base/"
  fi
done
echo "examples/quickstart is complete: $(du -sh "$here/base" | cut -f1) base model, $(du -sh "$here/data" | cut -f1) data"
