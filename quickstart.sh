#!/usr/bin/env bash
# Sets up, builds, and LoRA-tunes the small model of examples/quickstart on a task that it cannot do:
# Pig Latin for English words, cheque amounts in Chinese financial numerals. Can be run again.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

./scripts/setup.sh
cmake --preset release -DZEROTH_BUILD_TESTS=OFF >/dev/null
cmake --build build/release --target zeroth zeroth-worker

zeroth=build/release/zeroth
base=examples/quickstart/base
data=examples/quickstart/data
out=build/quickstart
started=$SECONDS

# A number of a JSON object on standard input: field NAME
field() {
  sed -n "s/.*\"$1\": *\([-+0-9.eE]*\).*/\1/p" | head -n 1
}

# The part of the held-out rows answered exactly: predict FOLDER [option ...]
predict() {
  "$zeroth" predict --model_name_or_path "$base" --template alpaca --eval_dataset "$data/heldout.json" \
    --max_new_tokens 48 --per_device_eval_batch_size 50 --output_dir "$@" --overwrite_output_dir true \
    --format json | field exact_match
}

echo "== 1/3 The base model answers the held-out rows"
before=$(predict "$out/before")

echo "== 2/3 LoRA training on 2 ranks, ZeRO stage 2: the file says accumulation 1, the command line 8"
summary=$("$zeroth" train --model_name_or_path "$base" --template alpaca --stage sft \
  --dataset "$data/train.json" --eval_dataset "$data/validation.json" --eval_strategy epoch \
  --finetuning_type lora --lora_rank 16 --lora_target all \
  --ranks 2 --deepspeed examples/quickstart/ds_config.json \
  --per_device_train_batch_size 1 --gradient_accumulation_steps 8 --num_train_epochs 1 \
  --learning_rate 3e-3 --lr_scheduler_type linear --warmup_ratio 0.05 \
  --output_dir "$out/adapter" --overwrite_output_dir true --format json)

echo "== 3/3 The tuned model answers the same rows"
after=$(predict "$out/after" --adapter_name_or_path "$out/adapter")

percent() {
  awk -v share="$1" 'BEGIN { printf "%.1f %%", 100 * share }'
}

cat <<END

Exact match on held-out rows   before $(percent "$before")   after $(percent "$after")
Loss at the end                train $(field last_loss <<<"$summary")   validation $(field eval_loss <<<"$summary")
Updates                        $(field updates <<<"$summary"), in all $((SECONDS - started)) s

The adapter is in              $out/adapter
The answers are in             $out/after/generated_predictions.jsonl (before: $out/before)
Every update is recorded in    $out/adapter/metrics.jsonl

Try it on your own rows:
  $zeroth predict --model_name_or_path $base --adapter_name_or_path $out/adapter --template alpaca \\
    --eval_dataset YOUR_ROWS.json --output_dir predictions
END
