# The only file that looks for LibTorch. zeroth_torch carries its headers as SYSTEM includes.
find_package(Torch REQUIRED)
add_library(zeroth_torch INTERFACE)
target_include_directories(zeroth_torch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})
target_link_libraries(zeroth_torch INTERFACE ${TORCH_LIBRARIES})
separate_arguments(ZEROTH_TORCH_FLAGS NATIVE_COMMAND "${TORCH_CXX_FLAGS}")
target_compile_options(zeroth_torch INTERFACE ${ZEROTH_TORCH_FLAGS})
# Headers of LibTorch then include the operations that they use, not all there are.
target_compile_definitions(zeroth_torch INTERFACE AT_PER_OPERATOR_HEADERS)
