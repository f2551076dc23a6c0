# The headers that cost most, compiled once: a third of a file's time is the JSON library's, half of one above LibTorch
# is LibTorch's. Four homes, for code and for tests, without LibTorch and above it; everything else reuses one of them,
# which asks for the same compiler flags (so code with flags of its own has none).
#
# Narrow on purpose: <torch/csrc/autograd/custom_function.h> in here would cost each file that does not need it 2.5 s.
set(ZEROTH_PLAIN_HEADERS <nlohmann/json.hpp> <fmt/format.h> <algorithm> <filesystem> <functional> <map> <memory>
  <optional> <set> <span> <string> <string_view> <vector>)
set(ZEROTH_TORCH_HEADERS <ATen/core/Tensor.h> <ATen/TensorOperators.h>)

function(zeroth_header_home name)
  cmake_parse_arguments(ARG "" "" "LINK;HEADERS" ${ARGN})
  file(WRITE ${CMAKE_BINARY_DIR}/${name}.cpp "// Home of precompiled headers.\n")
  add_library(${name} STATIC ${CMAKE_BINARY_DIR}/${name}.cpp)
  target_link_libraries(${name} PUBLIC fmt::fmt nlohmann_json::nlohmann_json ${ARG_LINK} PRIVATE zeroth_flags)
  target_precompile_headers(${name} PRIVATE ${ARG_HEADERS})
endfunction()

zeroth_header_home(zeroth_plain_pch HEADERS ${ZEROTH_PLAIN_HEADERS})
zeroth_header_home(zeroth_torch_pch LINK zeroth_torch HEADERS ${ZEROTH_TORCH_HEADERS} ${ZEROTH_PLAIN_HEADERS})
if(ZEROTH_BUILD_TESTS)
  zeroth_header_home(zeroth_plain_test_pch LINK GTest::gtest HEADERS <gtest/gtest.h> ${ZEROTH_PLAIN_HEADERS})
  zeroth_header_home(zeroth_torch_test_pch LINK zeroth_torch GTest::gtest
    HEADERS <gtest/gtest.h> <ATen/ATen.h> <torch/csrc/autograd/autograd.h> ${ZEROTH_PLAIN_HEADERS})
endif()
