# A folder is one target: foretrain_folder(NAME [libraries...]) compiles every .cpp of the current
# folder (not its subfolders) into foretrain_NAME. The libraries listed are all that it may include.
function(foretrain_folder name)
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cpp")
  if(sources)
    add_library(foretrain_${name} STATIC ${sources})
    target_link_libraries(foretrain_${name} PUBLIC foretrain_options tl::expected ${ARGN})
  else()
    add_library(foretrain_${name} INTERFACE)
    target_link_libraries(foretrain_${name} INTERFACE foretrain_options tl::expected ${ARGN})
  endif()
endfunction()

# foretrain_tests(NAME [libraries...]): one GoogleTest program from every *_test.cpp of the folder.
function(foretrain_tests name)
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*_test.cpp")
  if(NOT sources)
    return()
  endif()
  add_executable(test_${name} ${sources})
  target_link_libraries(test_${name} PRIVATE ${ARGN} foretrain_rapidcheck GTest::gtest GTest::gmock
                        GTest::gtest_main)
  target_compile_definitions(test_${name} PRIVATE FORETRAIN_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
                             FORETRAIN_BINARY_DIR="${CMAKE_BINARY_DIR}")
  add_test(NAME ${name} COMMAND test_${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT 600)
endfunction()

# foretrain_benchmarks(NAME [libraries...]): one Google Benchmark program from every *_benchmark.cpp.
function(foretrain_benchmarks name)
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*_benchmark.cpp")
  if(NOT FORETRAIN_BENCHMARKS OR NOT sources)
    return()
  endif()
  add_executable(benchmark_${name} ${sources})
  target_link_libraries(benchmark_${name} PRIVATE ${ARGN} benchmark::benchmark benchmark::benchmark_main)
  target_compile_definitions(benchmark_${name} PRIVATE FORETRAIN_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
endfunction()

# foretrain_fuzzers(NAME [libraries...]): one libFuzzer program per *_fuzz.cpp of the folder.
function(foretrain_fuzzers)
  if(NOT FORETRAIN_FUZZ)
    return()
  endif()
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*_fuzz.cpp")
  foreach(source ${sources})
    get_filename_component(name ${source} NAME_WE)
    add_executable(${name} ${source})
    target_link_libraries(${name} PRIVATE ${ARGN})
    target_compile_options(${name} PRIVATE -fsanitize=fuzzer)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    target_compile_definitions(${name} PRIVATE FORETRAIN_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  endforeach()
endfunction()

# Adds every listed subfolder that has a CMakeLists.txt.
macro(foretrain_subfolders)
  foreach(folder ${ARGN})
    if(EXISTS "${CMAKE_CURRENT_SOURCE_DIR}/${folder}/CMakeLists.txt")
      add_subdirectory(${folder})
    endif()
  endforeach()
endmacro()
