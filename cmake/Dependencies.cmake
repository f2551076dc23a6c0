# Everything comes from the system's packages (scripts/setup.sh); nothing is downloaded here.
find_package(Threads REQUIRED)
find_package(OpenMP REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(MINIZIP REQUIRED IMPORTED_TARGET minizip)
pkg_check_modules(HWY REQUIRED IMPORTED_TARGET libhwy)
find_library(UTF8PROC_LIBRARY utf8proc REQUIRED)
find_path(XXHASH_INCLUDE_DIR xxhash.h REQUIRED)
find_library(URING_LIBRARY uring REQUIRED)
# Debian's find_package(dnnl) also asks for OpenCL's development files, which oneDNN on a CPU does not need.
find_library(DNNL_LIBRARY dnnl REQUIRED)
find_path(DNNL_INCLUDE_DIR oneapi/dnnl/dnnl.hpp PATH_SUFFIXES include REQUIRED)
if(ZEROTH_BUILD_TESTS)
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()

add_library(zeroth_dnnl INTERFACE)
target_include_directories(zeroth_dnnl SYSTEM INTERFACE ${DNNL_INCLUDE_DIR})
target_link_libraries(zeroth_dnnl INTERFACE ${DNNL_LIBRARY})

add_library(zeroth_xxhash INTERFACE)  # header-only use (XXH_INLINE_ALL)
target_include_directories(zeroth_xxhash SYSTEM INTERFACE ${XXHASH_INCLUDE_DIR})

add_library(zeroth_yaml INTERFACE)  # the target is yaml-cpp up to 0.7, yaml-cpp::yaml-cpp after it
if(TARGET yaml-cpp::yaml-cpp)
  target_link_libraries(zeroth_yaml INTERFACE yaml-cpp::yaml-cpp)
else()
  target_link_libraries(zeroth_yaml INTERFACE yaml-cpp)
endif()
