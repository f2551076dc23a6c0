#include "config/keys/templates.h"

#include <string_view>

#include "base/text.h"

namespace zeroth::config {
namespace {

constexpr std::string_view kNamed =
    "chatml gemma gemma2 gemma3 llama2 llama3 mistral qwen qwen3 vicuna";

constexpr std::string_view kOthers =
    "aquila atom baichuan baichuan2 bailing bailing_v2 belle bluelm breeze chatglm2 "
    "chatglm3 chatml_de codegeex2 codegeex4 cohere cpm cpm3 cpm4 dbrx deepseek deepseek3 "
    "deepseekcoder deepseekr1 ernie ernie_nothink exaone falcon falcon_h1 fewshot glm4 "
    "glm4_moe glm4_moe_nothink glmz1 gpt gpt_oss granite3 granite4 hunyuan hunyuan_small "
    "index intern2 kimi_v2 lfm2 llama2_zh marco mimo mimo_v2 minimax1 minimax2 ministral "
    "mistral_small moonlight olmo openchat openchat-3.6 opencoder orion phi phi4 "
    "phi4_mini phi_small qwen3_5 qwen3_5_nothink qwen3_nothink sailor seed_coder seed_oss "
    "skywork_o1 smollm smollm2 solar starchat tele telechat2 xuanyuan xverse yayi yi "
    "youtu yuan zephyr ziya";

constexpr std::string_view kWithMedia =
    "dots_ocr ernie_vl gemma3n gemma4 glm4_5v glm4v glm4v_moe glm_ocr granite3_vision "
    "intern_s1 intern_vl keye_vl kimi_vl lfm2_vl llama4 llava llava_next "
    "llava_next_llama3 llava_next_mistral llava_next_qwen llava_next_video "
    "llava_next_video_mistral llava_next_video_yi llava_next_yi mimo_vl minicpm_o "
    "minicpm_v ministral3 mllama paligemma paligemma_chat pixtral qwen2_audio qwen2_omni "
    "qwen2_vl qwen3_omni qwen3_omni_nothink qwen3_vl qwen3_vl_nothink video_llava yi_vl "
    "youtu_vl";

std::map<std::string, std::string> all_because(std::string_view names, const std::string& reason) {
  std::map<std::string, std::string> reasons;
  for (const std::string& name : split(names, ' ')) {
    reasons.emplace(name, reason);
  }
  return reasons;
}

}  // namespace

std::map<std::string, std::string> templates_to_come() {
  std::map<std::string, std::string> templates =
      all_because(kNamed, "alpaca, default and empty are built so far");
  templates.merge(all_because(kOthers,
                              "alpaca, default and empty are built so far; a model's own chat "
                              "template comes with its folder"));
  return templates;
}

std::map<std::string, std::string> templates_with_media() {
  return all_because(kWithMedia, "models that see or hear are not supported: rows are text");
}

}  // namespace zeroth::config
