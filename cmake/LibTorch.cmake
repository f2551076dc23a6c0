# The only file that looks for LibTorch. zeroth_torch carries its headers as SYSTEM includes;
# zeroth_torch_pch holds the precompiled header that every module above LibTorch reuses.
find_package(Torch REQUIRED)
add_library(zeroth_torch INTERFACE)
target_include_directories(zeroth_torch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})
target_link_libraries(zeroth_torch INTERFACE ${TORCH_LIBRARIES})
separate_arguments(ZEROTH_TORCH_FLAGS NATIVE_COMMAND "${TORCH_CXX_FLAGS}")
target_compile_options(zeroth_torch INTERFACE ${ZEROTH_TORCH_FLAGS})

file(WRITE ${CMAKE_BINARY_DIR}/torch_pch.cpp "// Home of the precompiled LibTorch header.\n")
add_library(zeroth_torch_pch STATIC ${CMAKE_BINARY_DIR}/torch_pch.cpp)
target_link_libraries(zeroth_torch_pch PUBLIC zeroth_torch PRIVATE zeroth_flags)
target_precompile_headers(zeroth_torch_pch PRIVATE
  <ATen/ATen.h> <torch/csrc/autograd/autograd.h> <torch/csrc/autograd/custom_function.h>
  <algorithm> <functional> <map> <memory> <optional> <span> <string> <vector>)
