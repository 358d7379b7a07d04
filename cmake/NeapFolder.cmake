# One folder, one library, one test executable.
#
#   neap_folder(<name> [EXCLUDE <file>...] [DEPENDS <library>...])
#
# Makes, from the files under the current folder:
#   neap_<name>            every .cpp that is none of the below (header-only and empty are fine)
#   neap_<name>_testing    testing/*.cpp: what tests share (parsers of tables, doubles)
#   <name>_test            *_test.cpp, with GoogleTest
#   <name>_property        *_property.cpp, with GoogleTest and RapidCheck
# Files called main.cpp or *_main.cpp belong to executables and are left out.

include(GoogleTest)

# The first translation unit that a test shares: gtest costs a second a file without it.
file(WRITE "${CMAKE_BINARY_DIR}/cmake/pch.cpp" "// Holds the precompiled header of the tests.\n")
add_library(neap_test_pch STATIC "${CMAKE_BINARY_DIR}/cmake/pch.cpp")
target_link_libraries(neap_test_pch PRIVATE neap_warnings GTest::gtest)
target_compile_options(neap_test_pch PRIVATE ${NEAP_PCH_OPTIONS})
target_precompile_headers(neap_test_pch PRIVATE
  <gtest/gtest.h> <algorithm> <cstdint> <functional> <map> <optional> <string>
  <string_view> <utility> <variant> <vector>)

# Adds <target> from <sources> as a ctest suite. LABEL is unit, property or simulation.
function(neap_test_executable target label)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;DEPENDS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
    if(NEAP_SANITIZE)
      set(ARG_TIMEOUT 600)  # several times slower, and two at once
    endif()
  endif()
  add_executable(${target} ${ARG_SOURCES})
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/src")
  target_link_libraries(${target} PRIVATE
    ${ARG_DEPENDS} neap_warnings GTest::gtest GTest::gmock GTest::gtest_main Threads::Threads)
  target_compile_definitions(${target} PRIVATE NEAP_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  if(label STREQUAL "property")
    target_link_libraries(${target} PRIVATE neap_third_rapidcheck)
  endif()
  target_compile_options(${target} PRIVATE ${NEAP_PCH_OPTIONS})
  target_precompile_headers(${target} REUSE_FROM neap_test_pch)
  set_target_properties(${target} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
  gtest_discover_tests(${target} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
    TEST_PREFIX "${target}." WORKING_DIRECTORY "${CMAKE_BINARY_DIR}"
    PROPERTIES LABELS ${label} TIMEOUT ${ARG_TIMEOUT})
endfunction()

# A library from sources and headers; INTERFACE when there is nothing to compile.
function(neap_library target)
  cmake_parse_arguments(ARG "" "" "SOURCES;HEADERS;DEPENDS" ${ARGN})
  if(ARG_SOURCES)
    add_library(${target} STATIC ${ARG_SOURCES})
    set(scope PUBLIC)
    target_link_libraries(${target} PRIVATE neap_warnings neap_strict_warnings)
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(${target} ${scope} "${PROJECT_SOURCE_DIR}/src")
  target_link_libraries(${target} ${scope} ${ARG_DEPENDS} tl::expected Threads::Threads)

  # A header with a .cpp beside it is compiled alone by that file, which includes it first (the
  # repository lint sees to it). The others are compiled alone by CMake's header check.
  set(alone "")
  foreach(header IN LISTS ARG_HEADERS)
    string(REGEX REPLACE "\\.h$" ".cpp" source "${header}")
    if(NOT EXISTS "${source}")
      list(APPEND alone "${header}")
    endif()
  endforeach()
  if(alone)
    target_sources(${target} ${scope} FILE_SET HEADERS
      BASE_DIRS "${PROJECT_SOURCE_DIR}/src" FILES ${alone})
  endif()
endfunction()

function(neap_folder name)
  cmake_parse_arguments(ARG "" "" "EXCLUDE;DEPENDS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cpp")
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.h")
  if(ARG_EXCLUDE)
    list(REMOVE_ITEM sources ${ARG_EXCLUDE})
    list(REMOVE_ITEM headers ${ARG_EXCLUDE})
  endif()
  list(FILTER sources EXCLUDE REGEX "(/|_)main\\.cpp$")

  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
  set(properties ${sources})
  list(FILTER properties INCLUDE REGEX "_property\\.cpp$")
  set(shared_by_tests ${sources})
  list(FILTER shared_by_tests INCLUDE REGEX "/testing/")
  list(FILTER shared_by_tests EXCLUDE REGEX "_(test|property)\\.cpp$")
  list(FILTER sources EXCLUDE REGEX "_(test|property|bench|fuzz)\\.cpp$|/testing/")
  list(FILTER headers EXCLUDE REGEX "/testing/")

  neap_library(neap_${name} SOURCES ${sources} HEADERS ${headers} DEPENDS ${ARG_DEPENDS})
  set_property(GLOBAL APPEND PROPERTY NEAP_LIBRARIES neap_${name})
  set(test_links neap_${name})
  if(shared_by_tests)
    neap_library(neap_${name}_testing SOURCES ${shared_by_tests} DEPENDS neap_${name})
    set_property(GLOBAL APPEND PROPERTY NEAP_TESTING_LIBRARIES neap_${name}_testing)
  endif()
  # Folders are added in the order of their dependencies: these exist by now.
  get_property(testing_libraries GLOBAL PROPERTY NEAP_TESTING_LIBRARIES)
  list(PREPEND test_links ${testing_libraries})

  if(tests)
    neap_test_executable(${name}_test unit SOURCES ${tests} DEPENDS ${test_links})
  endif()
  if(properties)
    neap_test_executable(${name}_property property SOURCES ${properties} DEPENDS ${test_links})
  endif()
endfunction()
