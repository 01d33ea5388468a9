# Build options and the warnings every target is compiled with.
option(FORETRAIN_TESTS "Build the tests" ON)
option(FORETRAIN_BENCHMARKS "Build the benchmarks" ON)
option(FORETRAIN_FUZZ "Build the libFuzzer targets (needs clang)" OFF)
option(FORETRAIN_WERROR "Treat warnings as errors" OFF)
set(FORETRAIN_SANITIZE "" CACHE STRING "Sanitizers, comma separated: address,undefined")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}")
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
# Floating-point results must not depend on the build type: no contraction into FMA, no fast-math.
add_compile_options(-ffp-contract=off)

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CCACHE_PROGRAM}")
endif()

add_library(foretrain_options INTERFACE)
# -Wrestrict and -Wmaybe-uninitialized report the standard library itself under g++ 12 (GCC bugs 105651, 105562).
target_compile_options(foretrain_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion
                       -Wno-sign-conversion -Wno-restrict -Wno-maybe-uninitialized $<$<BOOL:${FORETRAIN_WERROR}>:-Werror>)
target_include_directories(foretrain_options INTERFACE "${CMAKE_SOURCE_DIR}")
if(FORETRAIN_SANITIZE)
  target_compile_options(foretrain_options INTERFACE -fsanitize=${FORETRAIN_SANITIZE}
                         -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(foretrain_options INTERFACE -fsanitize=${FORETRAIN_SANITIZE})
endif()
if(FORETRAIN_FUZZ)
  # Coverage of the libraries is what libFuzzer steers by.
  target_compile_options(foretrain_options INTERFACE -fsanitize=fuzzer-no-link)
endif()
