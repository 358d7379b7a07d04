# Language, warnings, sanitizers and the compiler cache: what every target shares.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)

set(NEAP_SANITIZE "" CACHE STRING "Sanitizers to build with, such as address,undefined")
option(NEAP_FUZZ "Build the fuzz targets (needs clang)" OFF)
option(NEAP_WERROR "Treat warnings as errors" ON)
option(NEAP_UNITY "Compile several files of a target as one" OFF)

# Line tables are enough for a backtrace, and a third of the size of full debug information.
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1 -DNDEBUG")
if(NEAP_SANITIZE)
  set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O1 -g1")
  add_compile_options(-fsanitize=${NEAP_SANITIZE} -fno-sanitize-recover=all
                      -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${NEAP_SANITIZE})
endif()
if(NEAP_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# Sections let the small supervisor leave out what it does not call.
add_compile_options(-ffunction-sections -fdata-sections)
add_link_options(-Wl,--gc-sections -Wl,--as-needed)

# Warnings are targets. Tests are spared the strict ones: gtest's own macros shadow names.
add_library(neap_warnings INTERFACE)
target_compile_options(neap_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wnon-virtual-dtor -Woverloaded-virtual
  # Designated initialisers name what differs from the defaults: the rest is meant to be absent.
  -Wno-missing-field-initializers
  $<$<BOOL:${NEAP_WERROR}>:-Werror>
  # g++ 12 reports overlapping copies in std::string that are not there (its bug 105651).
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
  # clang sees through to a deprecated call inside libstdc++'s own std::stable_sort.
  $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>)
add_library(neap_strict_warnings INTERFACE)
target_compile_options(neap_strict_warnings INTERFACE
  -Wshadow
  # clang counts sign conversions in -Wconversion, g++ does not: the same rule for both.
  -Wconversion -Wno-sign-conversion)

# The linker of LLVM is several times faster on objects with sanitizers.
find_program(NEAP_LLD NAMES ld.lld-19)
if(NEAP_LLD AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  add_link_options(-fuse-ld=lld)
endif()

find_program(NEAP_CCACHE NAMES ccache)
if(NEAP_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Precompiled headers need these allowances; the base directory makes clones share results.
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env
    "CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}" CCACHE_NOHASHDIR=1
    "CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime"
    "${NEAP_CCACHE}")
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  set(NEAP_PCH_OPTIONS -Xclang -fno-pch-timestamp)
else()
  set(NEAP_PCH_OPTIONS -fpch-preprocess)
endif()

# Most of a file's time goes into its headers: eight files that share them take well under half of
# the time. Names in anonymous namespaces have to differ within a target for it (decision 32). A
# build without it sees that each file compiles alone, and gives clang-tidy its database.
if(NEAP_UNITY)
  set(CMAKE_UNITY_BUILD ON)
  set(CMAKE_UNITY_BUILD_BATCH_SIZE 8)
endif()

find_package(Threads REQUIRED)
find_package(GTest REQUIRED)
find_package(benchmark REQUIRED)
find_package(tl-expected REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(CURL REQUIRED)
find_package(spdlog REQUIRED)
find_package(fmt REQUIRED)

# Libraries that ship no CMake package.
function(neap_find_plain_library name header library)
  find_path(NEAP_${name}_INCLUDE ${header} REQUIRED)
  find_library(NEAP_${name}_LIBRARY ${library} REQUIRED)
  add_library(neap_third_${name} INTERFACE)
  target_link_libraries(neap_third_${name} INTERFACE "${NEAP_${name}_LIBRARY}")
endfunction()
neap_find_plain_library(microhttpd microhttpd.h microhttpd)
neap_find_plain_library(xxhash xxhash.h xxhash)
neap_find_plain_library(rapidcheck rapidcheck.h rapidcheck)
