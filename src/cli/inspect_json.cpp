#include "cli/inspect_page.h"
#include "cli/inspect_sums.h"

namespace zeroth::cli {
namespace {

using checkpoint::Manifest;

Json tensor_list(const Inspected& found) {
  Json list = Json::array();
  for (const auto& [name, tensor] : found.tensors) {
    list.push_back({{"name", name},
                    {"dtype", formats::dtype_name(tensor.view->dtype)},
                    {"shape", tensor.view->shape},
                    {"file", tensor.file}});
  }
  return list;
}

Json file_list(const Inspected& found) {
  Json list = Json::array();
  for (const InspectedFile& file : found.files) {
    list.push_back({{"file", file.name},
                    {"bytes", file.bytes},
                    {"outcome", name_of(file.outcome)},
                    {"fault", file.is_sound() ? Json() : Json(file.fault)}});
  }
  return list;
}

Json unit_list(const Manifest& manifest) {
  Json list = Json::array();
  for (const checkpoint::UnitEntry& unit : manifest.units) {
    Json parameters = Json::array();
    for (const checkpoint::ParameterEntry& parameter : unit.parameters) {
      parameters.push_back({{"name", parameter.name}, {"shape", parameter.shape}});
    }
    list.push_back({{"name", unit.name}, {"parameters", std::move(parameters)}});
  }
  return list;
}

Json state_list(const Manifest& manifest) {
  Json list = Json::array();
  for (const StateKind& kind : state_kinds(manifest)) {
    list.push_back({{"kind", kind.what}, {"tensors", kind.tensors}, {"elements", kind.elements}});
  }
  return list;
}

Json to_json(const Manifest& manifest) {
  return {{"update", manifest.update},
          {"ranks", manifest.ranks},
          {"zero_stage", manifest.zero_stage},
          {"result", manifest.adapter ? "adapter" : "model"},
          {"only_weights", manifest.only_weights()},
          {"moments", manifest.num_moments},
          {"master_in_result", manifest.master_in_result},
          {"model_fingerprint", manifest.model_fingerprint},
          {"data_fingerprint", manifest.data_fingerprint},
          {"progress", manifest.progress},
          {"units", unit_list(manifest)},
          {"state", state_list(manifest)}};
}

Json checkpoint_list(const Inspected& found) {
  Json list = Json::array();
  for (const checkpoint::Found& one : found.checkpoints) {
    const std::string name = one.folder.filename().string();
    list.push_back({{"folder", name},
                    {"update", one.update},
                    {"complete", one.fault.empty()},
                    {"fault", one.fault.empty() ? Json() : Json(one.fault)},
                    {"latest", name == found.latest}});
  }
  return list;
}

Json values_list(const std::vector<OtherValues>& values) {
  Json list = Json::array();
  for (const OtherValues& one : values) {
    list.push_back({{"name", one.name},
                    {"elements", one.elements},
                    {"differing", one.differing},
                    {"without_difference", one.without_difference},
                    {"largest_difference", one.measured ? Json(one.largest) : Json()}});
  }
  return list;
}

}  // namespace

Json to_json(const Inspected& found) {
  const Sums sums = sums_of(found);
  Json json{{"path", found.path.string()},
            {"kind", name_of(found.kind)},
            {"sound", found.is_sound()},
            {"parameters", sums.elements},
            {"bytes", sums.bytes},
            {"types", sums.elements_by_type},
            {"tensors", tensor_list(found)},
            {"settings", found.settings},
            {"checksums", file_list(found)},
            {"faults", found.faults}};
  if (found.manifest) {
    json["checkpoint"] = to_json(*found.manifest);
  }
  if (!found.checkpoints.empty()) {
    json["checkpoints"] = checkpoint_list(found);
  }
  return json;
}

Json to_json(const Comparison& comparison) {
  Json forms = Json::array();
  for (const OtherForm& form : comparison.other_form) {
    forms.push_back({{"name", form.name}, {"here", form.here}, {"other", form.there}});
  }
  Json settings = Json::array();
  for (const OtherSetting& setting : comparison.settings) {
    settings.push_back(
        {{"key", setting.key}, {"value", setting.here}, {"other_value", setting.there}});
  }
  return {{"equal", comparison.equal()},
          {"equal_values", comparison.equal_values()},
          {"equal_tensors", comparison.equal_tensors},
          {"only_here", comparison.only_here},
          {"only_in_other", comparison.only_there},
          {"other_form", std::move(forms)},
          {"other_values", values_list(comparison.other_values)},
          {"settings", std::move(settings)},
          {"not_compared", comparison.faults}};
}

}  // namespace zeroth::cli
