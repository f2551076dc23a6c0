#include "zero/sums_on_file.h"

#include <algorithm>
#include <utility>

#include "optim/norm.h"
#include "zero/numbers.h"

#include <ATen/ops/empty.h>

namespace zeroth::zero {

using comm::NumberType;
using memory::FlatBuffer;

double sum_of_squares(const std::byte* sums, std::int64_t count, NumberType type) {
  constexpr std::int64_t kWidened = 1 << 20;  // elements at one time
  if (type == NumberType::kFloat32) {
    return optim::sum_of_squares(
        {reinterpret_cast<const float*>(sums), static_cast<std::size_t>(count)});
  }
  double sum = 0;
  for (std::int64_t begin = 0; begin < count; begin += kWidened) {
    const std::int64_t size = std::min(kWidened, count - begin);
    const at::Tensor wide =
        flat_view(const_cast<std::byte*>(sums) + begin * width_of(type), size, scalar_type(type))
            .to(at::kFloat);
    sum += optim::sum_of_squares({wide.data_ptr<float>(), static_cast<std::size_t>(size)});
  }
  return sum;
}

SumsOnFile::SumsOnFile(std::int64_t count,
                       NumberType type,
                       std::shared_ptr<offload::SwapSpace> space)
    : count_(count), type_(type), resting_(count, width_of(type), std::move(space)) {
}

void SumsOnFile::load(std::byte* into) const {
  finish();
  resting_.start_reading(0, count_, into).wait();
}

void SumsOnFile::start_writing(const std::byte* sums, bool last) {
  if (last) {
    squares_ = sum_of_squares(sums, count_, type_);
  }
  written_ = std::make_shared<InFlight>(resting_.start_writing(0, count_, sums));
  has_sums_ = true;
}

// What is narrow is added where it is narrow, so that each sum is rounded as it is in memory.
void SumsOnFile::add(FlatBuffer sums, StagingPool& staging, bool last) {
  FlatBuffer before = has_sums_ || is_narrow() ? staging.take() : FlatBuffer();
  const at::Tensor wide = flat_view(sums.data(), count_, at::kFloat);
  const at::Tensor store =
      flat_view(before.data(), before.bytes() > 0 ? count_ : 0, scalar_type(type_));
  if (has_sums_) {
    load(before.data());
  } else {
    store.zero_();
  }
  if (is_narrow()) {
    store.add_(wide);
    std::swap(sums, before);
  } else if (has_sums_) {
    wide.add_(store);
  } else {
    wide.add_(0.0);  // what starts at zero never holds a negative zero
  }
  start_writing(sums.data(), last);
  staging.give(std::move(sums), written_);
  if (before.bytes() > 0) {
    staging.give(std::move(before));
  }
}

void SumsOnFile::finish() const {
  if (written_ != nullptr) {
    written_->wait();
  }
}

at::Tensor SumsOnFile::copy() const {
  at::Tensor sums = at::empty({count_}, at::TensorOptions(scalar_type(type_)));
  if (has_sums_) {
    finish();
    resting_.copy_out(0, {static_cast<std::byte*>(sums.data_ptr()), sums.nbytes()});
  } else {
    sums.zero_();
  }
  return sums;
}

void SumsOnFile::overwrite(const at::Tensor& all) {
  finish();
  const auto* const bytes = static_cast<const std::byte*>(all.data_ptr());
  resting_.copy_in(0, {bytes, all.nbytes()});
  squares_ = sum_of_squares(bytes, count_, type_);
  has_sums_ = true;
}

}  // namespace zeroth::zero
