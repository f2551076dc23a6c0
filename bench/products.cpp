// The products of one update alone, by oneDNN and nothing of this project: what the roofline of
// `zeroth bench` is compared with (they must agree within a tenth).
//   zeroth_bench_products lora|full bf16|fp32 [packed|plain] [rows tokens hidden inner layers heads
//   key_heads vocabulary]
// Every product has operands of its own, as in a real update. LoRA trains adapters on all linears;
// their own small products are not among these. Medians of five rounds.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <oneapi/dnnl/dnnl.hpp>

namespace {

using dnnl::memory;

struct Model {
  std::int64_t rows = 4, tokens = 256, hidden = 576, inner = 1536, layers = 30, heads = 9,
               key_heads = 3, vocabulary = 49152;
};

// [rows, inner] x [inner, columns]; a weight lies as [out, in].
struct Product {
  std::int64_t rows, inner, columns;
  bool left_transposed, right_transposed, weight_on_the_right;
};

void add_linear(std::vector<Product>& products,
                std::int64_t rows,
                std::int64_t in,
                std::int64_t out,
                bool input_gradient,
                bool weight_gradient) {
  products.push_back({rows, in, out, false, true, true});
  if (input_gradient) {
    products.push_back({rows, out, in, false, false, true});
  }
  if (weight_gradient) {
    products.push_back({out, rows, in, true, false, false});
  }
}

std::vector<Product> products_of(const Model& m, bool full) {
  std::vector<Product> products;
  const std::int64_t rows = m.rows * m.tokens;
  const std::int64_t key = m.hidden / m.heads * m.key_heads;
  for (std::int64_t layer = 0; layer < m.layers; ++layer) {
    const bool below = full || layer > 0;  // the embedding is frozen beside adapters
    for (const std::int64_t out : {m.hidden, key, key}) {
      add_linear(products, rows, m.hidden, out, below, full);
    }
    add_linear(products, rows, m.hidden, m.hidden, true, full);
    add_linear(products, rows, m.hidden, m.inner, true, full);
    add_linear(products, rows, m.hidden, m.inner, true, full);
    add_linear(products, rows, m.inner, m.hidden, true, full);
  }
  add_linear(products, m.rows * (m.tokens - 1), m.hidden, m.vocabulary, true, full);
  return products;
}

class Ready {
 public:
  Ready(const Product& p, memory::data_type type, bool packs, const dnnl::engine& engine)
      : a_(described(p.rows, p.inner, p.left_transposed, type), engine),
        out_(described(p.rows, p.columns, false, type), engine) {
    const memory::desc plain = described(p.inner, p.columns, p.right_transposed, type);
    const memory::desc any({p.inner, p.columns}, type, memory::format_tag::any);
    const bool packed = packs && p.weight_on_the_right;
    const dnnl::matmul::primitive_desc desc(
        dnnl::matmul::desc(a_.get_desc(), packed ? any : plain, out_.get_desc()), engine);
    product_ = dnnl::matmul(desc);
    b_ = memory(desc.weights_desc(), engine);
    for (const memory& operand : {a_, b_, out_}) {
      auto* bytes = static_cast<unsigned char*>(operand.get_data_handle());
      std::fill_n(bytes, operand.get_desc().get_size(), 0x3C);  // 0.01 or so in either type
    }
  }

  void run(dnnl::stream& stream) const {
    product_.execute(stream, {{DNNL_ARG_SRC, a_}, {DNNL_ARG_WEIGHTS, b_}, {DNNL_ARG_DST, out_}});
  }

 private:
  static memory::desc described(std::int64_t rows,
                                std::int64_t columns,
                                bool transposed,
                                memory::data_type type) {
    return {{rows, columns}, type, transposed ? memory::dims{1, rows} : memory::dims{columns, 1}};
  }

  memory a_, b_, out_;
  dnnl::matmul product_;
};

double median_seconds(const std::vector<Ready>& products, dnnl::stream& stream) {
  constexpr int kRounds = 5;
  std::vector<double> seconds;
  for (int round = 0; round < kRounds + 1; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    for (const Ready& product : products) {
      product.run(stream);
    }
    stream.wait();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    if (round > 0) {
      seconds.push_back(took.count());
    }
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

}  // namespace

int main(int count, char** words) {
  if (count < 3) {
    std::fprintf(stderr, "lora|full bf16|fp32 [packed|plain] [sizes]: see bench/products.cpp\n");
    return 2;
  }
  const bool full = std::string(words[1]) == "full";
  const auto type =
      std::string(words[2]) == "fp32" ? memory::data_type::f32 : memory::data_type::bf16;
  const bool packs = !full && (count < 4 || std::string(words[3]) == "packed");
  Model model;
  std::int64_t* const sizes[] = {&model.rows,
                                 &model.tokens,
                                 &model.hidden,
                                 &model.inner,
                                 &model.layers,
                                 &model.heads,
                                 &model.key_heads,
                                 &model.vocabulary};
  for (int i = 4; i < count && i < 12; ++i) {
    *sizes[i - 4] = std::atoll(words[i]);
  }
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  std::vector<Ready> ready;
  double operations = 0;
  for (const Product& product : products_of(model, full)) {
    ready.emplace_back(product, type, packs, engine);
    operations += 2.0 * static_cast<double>(product.rows) * static_cast<double>(product.inner) *
                  static_cast<double>(product.columns);
  }
  const double seconds = median_seconds(ready, stream);
  std::printf("%zu products alone, %s: %.3f s, %.2f TFLOP/s\n",
              ready.size(),
              packs ? "packed" : "plain",
              seconds,
              operations / seconds / 1e12);
  return 0;
}
