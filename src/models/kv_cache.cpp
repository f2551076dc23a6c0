#include "models/kv_cache.h"

#include <algorithm>

#include "base/check.h"

#include <ATen/ops/empty.h>

namespace zeroth::models {
namespace {

constexpr std::int64_t kFirstCapacity = 64;

at::Tensor grown(const at::Tensor& buffer,
                 const at::Tensor& like,
                 std::int64_t capacity,
                 std::int64_t used) {
  at::Tensor larger =
      at::empty({like.size(0), like.size(1), capacity, like.size(3)}, like.options());
  if (buffer.defined() && used > 0) {
    larger.narrow(2, 0, used).copy_(buffer.narrow(2, 0, used));
  }
  return larger;
}

}  // namespace

std::pair<at::Tensor, at::Tensor> KvCache::append(std::int64_t layer,
                                                  const at::Tensor& k,
                                                  const at::Tensor& v) {
  ZEROTH_CHECK(layer >= 0 && layer < static_cast<std::int64_t>(layers_.size()),
               "no layer {} in this cache",
               layer);
  Layer& place = layers_[static_cast<std::size_t>(layer)];
  const std::int64_t needed = length_ + k.size(2);
  const std::int64_t capacity = place.keys.defined() ? place.keys.size(2) : 0;
  if (needed > capacity) {
    const std::int64_t larger = std::max({needed, 2 * capacity, kFirstCapacity});
    place.keys = grown(place.keys, k, larger, length_);
    place.values = grown(place.values, v, larger, length_);
  }
  place.keys.narrow(2, length_, k.size(2)).copy_(k);
  place.values.narrow(2, length_, v.size(2)).copy_(v);
  return {place.keys.narrow(2, 0, needed), place.values.narrow(2, 0, needed)};
}

void KvCache::select_rows(const at::Tensor& rows) {
  for (Layer& layer : layers_) {
    if (layer.keys.defined()) {
      layer.keys = layer.keys.index_select(0, rows);
      layer.values = layer.values.index_select(0, rows);
    }
  }
}

}  // namespace zeroth::models
