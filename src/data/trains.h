#pragma once

namespace zeroth::data {

// Which tokens of a supervised row are targets.
enum class Trains { kAnswers, kLastAnswer, kEverything };

}  // namespace zeroth::data
