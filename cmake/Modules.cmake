# zeroth_module(NAME [TORCH] [USES module ...] [EXTERNAL target ...])
# One library per folder under src/: every *.cpp is compiled into it, every *_test.cpp into its test
# program, which links only what the folder itself may use. TORCH gives LibTorch and its precompiled header.
function(zeroth_module name)
  cmake_parse_arguments(ARG "TORCH" "" "USES;EXTERNAL" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
  list(FILTER sources EXCLUDE REGEX "(_test|/main)\\.cpp$")

  set(used)
  foreach(module ${ARG_USES})
    list(APPEND used zeroth_${module})
  endforeach()
  if(sources)
    add_library(zeroth_${name} STATIC ${sources})
    target_include_directories(zeroth_${name} PUBLIC ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
    target_link_libraries(zeroth_${name} PUBLIC ${used} ${ARG_EXTERNAL} PRIVATE zeroth_flags)
    if(ARG_TORCH)
      target_link_libraries(zeroth_${name} PUBLIC zeroth_torch)
      target_precompile_headers(zeroth_${name} REUSE_FROM zeroth_torch_pch)
    endif()
  else()
    add_library(zeroth_${name} INTERFACE)
    target_include_directories(zeroth_${name} INTERFACE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
    target_link_libraries(zeroth_${name} INTERFACE ${used} ${ARG_EXTERNAL})
    if(ARG_TORCH)
      target_link_libraries(zeroth_${name} INTERFACE zeroth_torch)
    endif()
  endif()

  if(ZEROTH_BUILD_TESTS AND tests)
    zeroth_test(${name} SOURCES ${tests} LINK zeroth_${name})
    if(ARG_TORCH)
      target_precompile_headers(zeroth_${name}_test REUSE_FROM zeroth_torch_pch)
    endif()
  endif()
endfunction()

# zeroth_test(NAME SOURCES file ... LINK target ... [LABELS label ...]): one gtest program, its tests given to ctest.
function(zeroth_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK;LABELS" ${ARGN})
  add_executable(zeroth_${name}_test ${ARG_SOURCES})
  target_link_libraries(zeroth_${name}_test PRIVATE ${ARG_LINK} zeroth_flags GTest::gtest GTest::gtest_main)
  target_include_directories(zeroth_${name}_test PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  target_compile_definitions(zeroth_${name}_test PRIVATE
    ZEROTH_SOURCE_DIR="${CMAKE_SOURCE_DIR}" ZEROTH_BINARY_DIR="${CMAKE_BINARY_DIR}")
  if(NOT ARG_LABELS)
    set(ARG_LABELS fast)
  endif()
  gtest_discover_tests(zeroth_${name}_test TEST_PREFIX "${name}." DISCOVERY_MODE PRE_TEST
    PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT 300
    ENVIRONMENT "GOMP_SPINCOUNT=1000")  # tests run beside each other
endfunction()
