#include "formats/pickle.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "formats/pickle_opcodes.h"
#include "formats/pickle_values.h"
#include "formats/strict_json.h"
#include "formats/torch_calls.h"
#include <fmt/format.h>

namespace zeroth::formats {
namespace {

using pickle::Kind;
using pickle::Value;
using enum pickle::Opcode;

constexpr std::size_t kShownName = 120;
constexpr std::string_view kEarly = "it ends too early";

class Unpickler {
 public:
  Unpickler(std::span<const std::byte> bytes, std::string source)
      : bytes_(bytes), source_(std::move(source)) {}

  const Value& read() {
    while (!stopped_) {
      step(static_cast<unsigned char>(number(1)));
    }
    return *pop();
  }

  [[noreturn]] void fail(std::string_view what) const {
    throw Error(ErrorKind::kFormat,
                fmt::format("{} is no state dictionary of PyTorch: {} (byte {} of data.pkl)\n"
                            "  Fetch the file again.",
                            source_,
                            what,
                            at_));
  }

 private:
  void step(unsigned char opcode) {
    if (!push_constant(opcode) && !collect(opcode) && !remember(opcode)) {
      build(opcode);
    }
  }

  bool push_constant(unsigned char opcode) {
    switch (opcode) {
      case kBinInt:
        push_integer(static_cast<std::int32_t>(number(4)));
        return true;
      case kBinInt1:
        push_integer(static_cast<std::int64_t>(number(1)));
        return true;
      case kBinInt2:
        push_integer(static_cast<std::int64_t>(number(2)));
        return true;
      case kLong1:
        push_integer(long_integer(number(1)));
        return true;
      case kNone:
        push(Kind::kNone);
        return true;
      case kNewTrue:
      case kNewFalse:
        push(Kind::kBool);
        return true;
      case kBinFloat:
        (void)number(8);  // no tensor depends on one
        push(Kind::kFloat);
        return true;
      case kBinUnicode:
        push_text(Kind::kText, text(number(4)));
        return true;
      case kShortBinUnicode:
        push_text(Kind::kText, text(number(1)));
        return true;
      default:
        return false;
    }
  }

  bool collect(unsigned char opcode) {
    switch (opcode) {
      case kMark:
        marks_.push_back(stack_.size());
        return true;
      case kEmptyTuple:
        push(Kind::kTuple);
        return true;
      case kEmptyList:
        push(Kind::kList);
        return true;
      case kEmptyDict:
        push(Kind::kDict);
        return true;
      case kTuple:
        push_tuple(since_mark());
        return true;
      case kTuple1:
      case kTuple2:
      case kTuple3:
        push_tuple(last(opcode - kTuple1 + 1U));
        return true;
      case kAppend:
        extend(Kind::kList, last(1));
        return true;
      case kAppends:
        extend(Kind::kList, since_mark());
        return true;
      case kSetItem:
        extend(Kind::kDict, last(2));
        return true;
      case kSetItems:
        extend(Kind::kDict, since_mark());
        return true;
      default:
        return false;
    }
  }

  bool remember(unsigned char opcode) {
    switch (opcode) {
      case kBinPut:
        memo_[number(1)] = top();
        return true;
      case kLongBinPut:
        memo_[number(4)] = top();
        return true;
      case kMemoize:
        memo_[memo_.size()] = top();
        return true;
      case kBinGet:
        stack_.push_back(remembered(number(1)));
        return true;
      case kLongBinGet:
        stack_.push_back(remembered(number(4)));
        return true;
      default:
        return false;
    }
  }

  void build(unsigned char opcode) {
    switch (opcode) {
      case kProto:
        (void)number(1);
        return;
      case kFrame:
        (void)number(8);
        return;
      case kStop:
        stopped_ = true;
        return;
      case kGlobal: {
        const std::string module = line();
        push_name(module, line());
        return;
      }
      case kStackGlobal: {
        const std::vector<Value*> names = last(2);
        push_name(names[0]->text, names[1]->text);
        return;
      }
      case kReduce:
        reduce();
        return;
      case kBuild:
        set_state();
        return;
      case kBinPersId:
        push_storage();
        return;
      default:
        at_ -= 1;
        fail(fmt::format("opcode 0x{:02x} is not one that weights need", opcode));
    }
  }

  std::uint64_t number(std::size_t size) {
    const auto bytes = take(size);
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < size; ++i) {
      value |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * i);
    }
    return value;
  }

  // Two's complement of any length; those over eight bytes count nothing that fits a machine.
  std::int64_t long_integer(std::size_t size) {
    if (size > sizeof(std::int64_t)) {
      fail("a number is too large");
    }
    if (size == 0) {
      return 0;
    }
    const std::size_t unused = 8 * (sizeof(std::int64_t) - size);
    return std::bit_cast<std::int64_t>(number(size) << unused) >> unused;
  }

  std::string text(std::uint64_t size) {
    const auto bytes = take(size);
    std::string text(bytes.size(), '\0');
    std::memcpy(text.data(), bytes.data(), bytes.size());
    return text;
  }

  std::string line() {
    const auto rest = bytes_.subspan(at_);
    const auto end = std::find(rest.begin(), rest.end(), std::byte{'\n'});
    std::string result = text(static_cast<std::uint64_t>(end - rest.begin()));
    (void)take(1);
    return result;
  }

  std::span<const std::byte> take(std::uint64_t size) {
    if (size > bytes_.size() - at_) {
      fail(kEarly);
    }
    const auto result = bytes_.subspan(at_, size);
    at_ += size;
    return result;
  }

  Value* push(Kind kind) {
    Value* const value = heap_.make(kind);
    if (value == nullptr) {
      fail("it has more entries than any model");
    }
    stack_.push_back(value);
    return value;
  }

  void push_integer(std::int64_t value) { push(Kind::kInteger)->integer = value; }

  void push_text(Kind kind, std::string text) { push(kind)->text = std::move(text); }

  void push_tuple(std::vector<Value*> items) { push(Kind::kTuple)->items = std::move(items); }

  void push_name(const std::string& module, const std::string& name) {
    const std::string whole = module + "." + name;
    if (!pickle::is_known_name(whole)) {
      throw Error(
          ErrorKind::kNotSupported,
          fmt::format("{} asks for \"{}\", which weights do not need: loading it with Python could "
                      "run anything\n  Nothing was run. Use a file from a source you trust, saved "
                      "as safetensors.",
                      source_,
                      printable(whole, kShownName)));
    }
    push_text(Kind::kCallable, whole);
  }

  Value* top() {
    if (stack_.empty() || (!marks_.empty() && marks_.back() == stack_.size())) {
      fail("a value is missing");
    }
    return stack_.back();
  }

  Value* pop() {
    Value* const value = top();
    stack_.pop_back();
    return value;
  }

  std::vector<Value*> last(std::size_t count) {
    std::vector<Value*> values(count);
    std::generate(values.rbegin(), values.rend(), [this] { return pop(); });
    return values;
  }

  std::vector<Value*> since_mark() {
    if (marks_.empty()) {
      fail("a mark is missing");
    }
    const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<Value*> values(begin, stack_.end());
    stack_.erase(begin, stack_.end());
    marks_.pop_back();
    return values;
  }

  void extend(Kind kind, const std::vector<Value*>& items) {
    Value* const container = top();
    if (container->kind != kind || (kind == Kind::kDict && items.size() % 2 != 0)) {
      fail("entries have no list or dictionary");
    }
    container->items.insert(container->items.end(), items.begin(), items.end());
  }

  Value* remembered(std::uint64_t key) {
    const auto found = memo_.find(key);
    if (found == memo_.end()) {
      fail("it refers to a value that was not there");
    }
    return found->second;
  }

  void reduce() {
    const Value* const arguments = pop();
    const Value* const function = pop();
    if (!pickle::call(*function, *arguments, *push(Kind::kNone))) {
      fail(fmt::format("a call of {} that PyTorch does not write",
                       printable(function->text, kShownName)));
    }
  }

  // Attributes of a dictionary (Transformers' _metadata of versions) say nothing of the weights.
  void set_state() {
    (void)pop();
    if (top()->kind != Kind::kDict) {
      fail("something other than a dictionary has attributes");
    }
  }

  void push_storage() {
    const Value* const id = pop();
    if (!pickle::load_storage(*id, *push(Kind::kNone))) {
      fail("a reference to a storage that PyTorch does not write");
    }
  }

  std::span<const std::byte> bytes_;
  std::string source_;
  std::size_t at_ = 0;
  bool stopped_ = false;
  pickle::Heap heap_;
  std::vector<Value*> stack_;
  std::vector<std::size_t> marks_;
  std::unordered_map<std::uint64_t, Value*> memo_;
};

}  // namespace

std::vector<PickledTensor> read_state_dict(std::span<const std::byte> pickle,
                                           const std::string& source) {
  Unpickler unpickler(pickle, source);
  const Value& dictionary = unpickler.read();
  if (dictionary.kind != Kind::kDict) {
    unpickler.fail("a dictionary of tensors is expected");
  }
  std::vector<PickledTensor> tensors;
  std::set<std::string> names;
  for (std::size_t i = 0; i + 1 < dictionary.items.size(); i += 2) {
    const Value& name = *dictionary.items[i];
    const Value& value = *dictionary.items[i + 1];
    if (name.kind != Kind::kText || value.kind != Kind::kTensor) {
      unpickler.fail(fmt::format("entry \"{}\" is no tensor", printable(name.text, kShownName)));
    }
    if (!names.insert(name.text).second) {
      unpickler.fail(fmt::format("{} stands there twice", printable(name.text, kShownName)));
    }
    tensors.push_back(value.tensor);
    tensors.back().name = name.text;
  }
  return tensors;
}

}  // namespace zeroth::formats
