# What `cmake --install` gives: bin/zeroth and bin/zeroth-worker (src/cli, src/worker), and for programs
# that use the library include/zeroth, lib/libzeroth.a with all modules in it, and find_package(zeroth).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# zeroth_gather_links(TARGET MODULES EXTERNALS): the static modules behind a target, itself included,
# and everything else that they link.
function(zeroth_gather_links target modules_name externals_name)
  set(modules)
  set(externals)
  set(seen)
  set(waiting ${target})
  while(waiting)
    list(POP_FRONT waiting item)
    string(REGEX REPLACE "^\\$<LINK_ONLY:(.*)>$" "\\1" item "${item}")
    if(item IN_LIST seen OR item STREQUAL "zeroth_flags")
      continue()
    endif()
    list(APPEND seen ${item})
    if(NOT item MATCHES "^zeroth_")
      list(APPEND externals ${item})
      continue()
    endif()
    get_target_property(type ${item} TYPE)
    if(type STREQUAL "STATIC_LIBRARY")
      list(APPEND modules ${item})
    endif()
    get_target_property(links ${item} INTERFACE_LINK_LIBRARIES)
    if(links)
      list(APPEND waiting ${links})
    endif()
  endwhile()
  set(${modules_name} ${modules} PARENT_SCOPE)
  set(${externals_name} ${externals} PARENT_SCOPE)
endfunction()

zeroth_gather_links(zeroth_library modules externals)
set(objects)
foreach(module ${modules})
  list(APPEND objects $<TARGET_OBJECTS:${module}>)
endforeach()
add_library(zeroth_archive STATIC ${objects})
set_target_properties(zeroth_archive PROPERTIES
  OUTPUT_NAME zeroth ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib LINKER_LANGUAGE CXX)

# Packages that a program's own build has to find again, and files that it links as they are.
set(ZEROTH_PACKAGES)
set(ZEROTH_LINKS)
foreach(external ${externals})
  if(external MATCHES "^(fmt|yaml-cpp|Threads|OpenMP|MPI|ZLIB)::" OR external STREQUAL "yaml-cpp")
    string(REGEX REPLACE "::.*" "" package ${external})
    list(APPEND ZEROTH_PACKAGES ${package})
    list(APPEND ZEROTH_LINKS ${external})
  elseif(external MATCHES "^PkgConfig::(.*)$")
    list(APPEND ZEROTH_LINKS ${${CMAKE_MATCH_1}_LINK_LIBRARIES})
  elseif(IS_ABSOLUTE ${external} AND NOT external IN_LIST TORCH_LIBRARIES)
    list(APPEND ZEROTH_LINKS ${external})
  elseif(NOT external IN_LIST TORCH_LIBRARIES AND NOT external STREQUAL "nlohmann_json::nlohmann_json")
    message(FATAL_ERROR "cmake/Install.cmake does not know how programs find ${external}")
  endif()
endforeach()
list(REMOVE_DUPLICATES ZEROTH_PACKAGES)
list(JOIN ZEROTH_PACKAGES " " ZEROTH_PACKAGES)

configure_package_config_file(cmake/zerothConfig.cmake.in ${CMAKE_BINARY_DIR}/zerothConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/zeroth
  PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/zerothConfigVersion.cmake COMPATIBILITY SameMinorVersion)

install(DIRECTORY include/zeroth DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(TARGETS zeroth_archive ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES ${CMAKE_BINARY_DIR}/zerothConfig.cmake ${CMAKE_BINARY_DIR}/zerothConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/zeroth)
