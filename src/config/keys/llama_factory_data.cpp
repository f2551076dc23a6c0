#include "config/field.h"
#include "config/keys/forms.h"

// LLaMA-Factory's options of rows and answers, and of what reads pictures or serves models.
namespace zeroth::config {
namespace {

Declarations row_keys() {
  return {
      planned("tool_format", text(), "how a template writes tools", "rows have no tools"),
      off_too({"none"},
              planned("enable_thinking",
                      flag(true),
                      "train reasoning templates with their thoughts",
                      "templates that write thoughts are not built yet")),
      planned("preserve_thinking",
              flag(false),
              "keep the thoughts of earlier answers",
              "no template writes thoughts yet"),
      refused("ignore_pad_token_for_loss",
              flag(true),
              "do not train padding",
              "padding is never a target: leave it out"),
      refused("media_dir",
              text(),
              "folder of pictures, sound and video",
              "rows are text: leave it out"),
  };
}

Declarations reading_keys() {
  return {
      planned("streaming",
              flag(false),
              "read rows while training",
              "all rows are read before training"),
      only_if("streaming",
              true,
              planned("buffer_size",
                      whole(kAtLeastOne, 16384, "rows"),
                      "rows that streaming shuffles among",
                      "all rows are shuffled together")),
      planned(
          "mix_strategy",
          one_of({"concat", "interleave_under", "interleave_over", "interleave_once"}, "concat"),
          "how rows of several files are mixed",
          "files are read one after the other"),
      planned("interleave_probs",
              {.type = ValueType::kNumbers, .range = kShare},
              "share of each file when mixing",
              "files are read one after the other"),
      planned("tokenized_path",
              text(),
              "folder that keeps tokenised rows",
              "rows are tokenised at each start"),
      refused("eval_on_each_dataset",
              flag(false),
              "evaluate each file by itself",
              "all eval_dataset files are evaluated together: run zeroth eval on each"),
      harmless(
          "overwrite_cache", flag(false), "tokenise again", "no cache of tokenised rows is kept"),
      harmless("preprocessing_batch_size",
               whole(kAtLeastOne, 1000, "rows"),
               "rows tokenised together",
               "rows are tokenised one by one"),
      harmless("preprocessing_num_workers",
               whole(kNotNegative, nullptr, "processes"),
               "processes that tokenise",
               "tokenising needs no worker processes"),
      harmless("data_shared_file_system",
               flag(false),
               "let one host tokenise for all",
               "every rank tokenises what it reads"),
  };
}

Declarations answer_keys() {
  return {
      refused("num_beams",
              whole(kAtLeastOne, 1),
              "answers that are followed at once",
              "greedy and sampled generation are built: leave it out, or use --do_sample"),
      refused("length_penalty",
              number({}, 1.0),
              "how beams weigh longer answers",
              "it belongs to beams, which are not built: leave it out"),
      off_too({1},
              refused("eval_num_beams",
                      whole(kAtLeastOne),
                      "num_beams while evaluating",
                      "evaluation computes the loss, it follows no beams: leave it out")),
      off_too({1},
              refused("generation_num_beams",
                      whole(kAtLeastOne),
                      "num_beams, as Transformers says it",
                      "beams are not built: leave it out")),
      refused("generation_max_length",
              whole(kAtLeastOne, nullptr, "tokens"),
              "longest prompt and answer together, as Transformers says it",
              "use --max_length, or --max_new_tokens for the answer alone"),
      refused("generation_config",
              text(),
              "file of generation settings",
              "write its settings as options: --temperature, --top_p, ..."),
  };
}

Declarations media_keys() {
  const Range pixels = kAtLeastOne;
  return {
      harmless("image_max_pixels",
               whole(pixels, 589824, "pixels"),
               "largest picture",
               "rows have no pictures that could be too large"),
      harmless("image_min_pixels",
               whole(pixels, 1024, "pixels"),
               "smallest picture",
               "rows have no pictures that could be too small"),
      harmless("image_do_pan_and_scan",
               flag(false),
               "cut pictures for Gemma 3",
               "rows have no pictures to pan over"),
      harmless("crop_to_patches",
               flag(false),
               "cut pictures for InternVL",
               "rows have no pictures to crop"),
      harmless("video_max_pixels",
               whole(pixels, 65536, "pixels"),
               "largest frame of a video",
               "rows have no videos that could be too large"),
      harmless("video_min_pixels",
               whole(pixels, 256, "pixels"),
               "smallest frame of a video",
               "rows have no videos that could be too small"),
      harmless("video_fps",
               number(kPositive, 2.0, "frames a second"),
               "frames taken from a video",
               "rows have no videos to take frames from"),
      harmless("video_maxlen",
               whole(kAtLeastOne, 128, "frames"),
               "most frames of a video",
               "rows have no videos that could be too long"),
      harmless("use_audio_in_video", flag(false), "hear videos too", "rows have no videos to hear"),
      harmless("audio_sampling_rate",
               whole(kAtLeastOne, 16000, "Hz"),
               "sampling rate of sound",
               "rows have no sound"),
  };
}

Declarations serving_keys() {
  return {
      harmless("vllm_maxlen",
               whole(kAtLeastOne, 4096, "tokens"),
               "vLLM's longest row",
               "vLLM serves nothing here, cutoff_len bounds the rows"),
      harmless("vllm_gpu_util",
               number({.min = 0, .max = 1, .min_excluded = true}, 0.7),
               "vLLM's share of GPU memory",
               "vLLM takes no memory here"),
      harmless("vllm_enforce_eager",
               flag(false),
               "vLLM without CUDA graphs",
               "vLLM records no graphs here"),
      harmless("vllm_max_lora_rank",
               whole(kAtLeastOne, 32),
               "vLLM's largest adapter rank",
               "vLLM loads no adapter here"),
      harmless("vllm_config", block(), "vLLM's further settings", "vLLM is not started"),
      harmless("sglang_maxlen",
               whole(kAtLeastOne, 4096, "tokens"),
               "SGLang's longest row",
               "SGLang serves nothing here, cutoff_len bounds the rows"),
      harmless("sglang_mem_fraction",
               number({.min = 0, .max = 1, .min_excluded = true}, 0.7),
               "SGLang's share of GPU memory",
               "SGLang takes no memory here"),
      harmless("sglang_tp_size",
               whole({.min = 1, .also = -1}, -1),
               "SGLang's tensor-parallel ranks",
               "SGLang has no ranks here"),
      harmless("sglang_config", block(), "SGLang's further settings", "SGLang is not started"),
      harmless("sglang_lora_backend",
               one_of({"triton", "flashinfer"}, "triton"),
               "SGLang's adapter kernels",
               "SGLang loads no adapter here"),
      refused("use_kt",
              flag(false),
              "train through KTransformers",
              "the engine trains by itself: leave it out"),
      harmless("kt_optimize_rule",
               text(),
               "KTransformers' rule file",
               "use_kt is refused, so no rule is read"),
      harmless("cpu_infer",
               whole(kAtLeastOne, 32, "threads"),
               "KTransformers' CPU threads",
               "use_kt is refused; --threads says how many threads compute"),
      harmless("chunk_size",
               whole(kAtLeastOne, 8192, "tokens"),
               "KTransformers' piece of a row",
               "use_kt is refused, so rows are not cut into its pieces"),
      harmless("kt_maxlen",
               whole(kAtLeastOne, 4096, "tokens"),
               "KTransformers' longest row",
               "use_kt is refused, cutoff_len bounds the rows"),
      harmless("kt_use_cuda_graph",
               flag(true),
               "KTransformers with CUDA graphs",
               "use_kt is refused, so it records no graphs"),
      harmless(
          "kt_mode", text("normal"), "KTransformers' mode", "use_kt is refused, so it has no mode"),
      harmless("kt_force_think",
               flag(false),
               "make KTransformers think first",
               "use_kt is refused, so it answers nothing"),
  };
}

// `zeroth tokenize` will render chat templates.
Declaration message_key() {
  return {.name = "messages",
          .type = ValueType::kBoolean,
          .default_value = false,
          .commands = bit(Command::kTokenize),
          .help = "the lines are conversations: render the model's chat template",
          .field = field(&RunConfig::messages),
          .status = Status::kPlanned,
          .off_values = {false},
          .reason = "chat templates are not rendered yet"};
}

}  // namespace

Declarations llama_factory_data_keys() {
  return joined({in_section("Data", row_keys()),
                 in_section("Reading rows", reading_keys()),
                 in_section("Generation", answer_keys()),
                 in_section("Pictures and sound", media_keys()),
                 in_section("Serving", serving_keys()),
                 in_section("Data", {message_key()})});
}

}  // namespace zeroth::config
