# The few functions every CMakeLists.txt of the tree is written with.
#
#   hybrid_tablegen(<out.inc> <in.td> <generator flags...>)  one generated file
#   hybrid_pass_table(<Room>)                                Passes.td of a room
#   hybrid_compiler_library(<name> [sources...] [LINK libs...])
#   hybrid_runtime_library(<name> sources... [LINK libs...])
#   hybrid_tool(<name> sources... [LINK libs...] [RUNTIME])
#   hybrid_unit_test(<name> sources... [LINK libs...] [RUNTIME])
#
# There is one precompiled header per kind of target (cmake/pch): compiler code,
# runtime code, tools of the runtime, and the unit tests of either. It serves one
# level of optimisation, so targets of a kind have the same.

# Everything generated. Compiler code depends on all of it, so a library never
# lists the tables it uses.
add_custom_target(hybrid-generated)

function(hybrid_tablegen output td)
  set(out "${CMAKE_CURRENT_BINARY_DIR}/${output}")
  add_custom_command(OUTPUT "${out}"
    COMMAND mlir-tblgen ${ARGN} -I "${MLIR_INCLUDE_DIRS}" -I "${PROJECT_SOURCE_DIR}/include"
      -I "${CMAKE_CURRENT_SOURCE_DIR}" "${CMAKE_CURRENT_SOURCE_DIR}/${td}"
      --write-if-changed -o "${out}" -d "${out}.d"
    ${HYBRID_AFTER_TABLEGEN}
    DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${td}" DEPFILE "${out}.d"
    COMMENT "Generating ${output}" VERBATIM)
  file(RELATIVE_PATH where "${PROJECT_BINARY_DIR}" "${out}")
  string(MAKE_C_IDENTIFIER "${where}" id)
  add_custom_target(${id} DEPENDS "${out}")
  add_dependencies(hybrid-generated ${id})
endfunction()

# Gives Passes.h.inc with registerHybrid<Room>Passes(). The statistics in it are
# our counters: hybrid/Hybrid/Counter.h says why.
function(hybrid_pass_table room)
  set(HYBRID_AFTER_TABLEGEN
    COMMAND sed -i s/::mlir::Pass::Statistic/::hybrid::Counter/ "${CMAKE_CURRENT_BINARY_DIR}/Passes.h.inc")
  hybrid_tablegen(Passes.h.inc Passes.td -gen-pass-decls -name=Hybrid${room})
endfunction()

set(HYBRID_WARNINGS -Wall -Wextra -Wno-unused-parameter -Werror)

# Settings of compiler code: LLVM's own, as Debian's package was built.
add_library(hybrid_compiler_settings INTERFACE)
target_compile_options(hybrid_compiler_settings INTERFACE
  ${HYBRID_WARNINGS} -fno-exceptions -fvisibility-inlines-hidden)
target_include_directories(hybrid_compiler_settings INTERFACE "${PROJECT_SOURCE_DIR}/include")
target_include_directories(hybrid_compiler_settings SYSTEM INTERFACE
  "${PROJECT_BINARY_DIR}/include" ${MLIR_INCLUDE_DIRS})
# One way of linking only: static MLIR libraries beside these two would give
# every type two ids.
target_link_libraries(hybrid_compiler_settings INTERFACE MLIR LLVM)

# Settings of runtime code: no LLVM.
add_library(hybrid_runtime_settings INTERFACE)
target_compile_options(hybrid_runtime_settings INTERFACE
  ${HYBRID_WARNINGS} -fvisibility=hidden)
target_include_directories(hybrid_runtime_settings INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/runtime/include>
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/runtime/src>)

# How far code of a kind is optimised when the preset says nothing for it: the runtime
# in every build, because it is what a model waits for; its tests and tools, which wait
# for it and not for themselves, not in the dev build, because that is half of what
# compiling them costs. Tests of the compiler compute what it is compared with.
function(_hybrid_optimise target kind)
  if(HYBRID_SANITIZE)
    return()
  endif()
  if(kind STREQUAL runtime)
    target_compile_options(${target} PRIVATE -O2)
  elseif(kind MATCHES "^runtime_")
    target_compile_options(${target} PRIVATE $<$<CONFIG:RelWithDebInfo>:-O0>)
  endif()
  # A test says where it fails; the libraries keep their lines.
  if(NOT kind MATCHES "^(runtime|compiler)$")
    target_compile_options(${target} PRIVATE $<$<CONFIG:RelWithDebInfo>:-g0>)
  endif()
endfunction()

find_package(Threads REQUIRED)
if(HYBRID_BUILD_TESTS)
  find_package(GTest REQUIRED)
endif()

# _hybrid_pch(kind settings [ON kind] libs...): with ON the header is made on top of
# another kind's, in a tenth of the time.
function(_hybrid_pch kind settings)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "ON" "")
  add_library(hybrid_pch_${kind} OBJECT "${PROJECT_SOURCE_DIR}/cmake/pch/empty.cpp")
  target_link_libraries(hybrid_pch_${kind} PRIVATE ${settings} ${arg_UNPARSED_ARGUMENTS})
  target_compile_options(hybrid_pch_${kind} PRIVATE $<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>)
  _hybrid_optimise(hybrid_pch_${kind} ${kind})
  target_precompile_headers(hybrid_pch_${kind} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX>:${PROJECT_SOURCE_DIR}/cmake/pch/${kind}.h>)
  set(folder "${PROJECT_BINARY_DIR}/CMakeFiles/hybrid_pch_${kind}.dir")
  set(texts "${PROJECT_SOURCE_DIR}/cmake/pch/${kind}.h")
  if(arg_ON AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    set(base "${PROJECT_BINARY_DIR}/CMakeFiles/hybrid_pch_${arg_ON}.dir/cmake_pch.hxx.pch")
    # The source that CMake makes the header from.
    set_source_files_properties("${folder}/cmake_pch.hxx.cxx" PROPERTIES
      COMPILE_FLAGS "-Xclang -include-pch -Xclang ${base}" OBJECT_DEPENDS "${base}")
    # It names its base by a full path, so it is not for a cache of several checkouts.
    set_target_properties(hybrid_pch_${kind} PROPERTIES CXX_COMPILER_LAUNCHER "")
    list(PREPEND texts "${PROJECT_SOURCE_DIR}/cmake/pch/${arg_ON}.h")
  endif()
  # What ccache hashes in place of the precompiled header. The upstream headers
  # themselves it hashes one by one.
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${texts})
  set(sums "")
  foreach(text IN LISTS texts)
    file(SHA256 "${text}" checksum)
    string(APPEND sums "${checksum} ")
  endforeach()
  file(CONFIGURE OUTPUT "CMakeFiles/hybrid_pch_${kind}.dir/cmake_pch.hxx.pch.sum"
    CONTENT "${sums}${CMAKE_CXX_COMPILER_VERSION}\n")
endfunction()
_hybrid_pch(compiler hybrid_compiler_settings)
_hybrid_pch(runtime hybrid_runtime_settings Threads::Threads)
_hybrid_pch(runtime_tool hybrid_runtime_settings Threads::Threads)
if(HYBRID_BUILD_TESTS)
  _hybrid_pch(compiler_test hybrid_compiler_settings ON compiler GTest::gtest)
  _hybrid_pch(runtime_test hybrid_runtime_settings Threads::Threads GTest::gtest)
endif()

function(_hybrid_use_pch target kind)
  # CMake would compile a program with -fPIE, for which the header made with
  # -fPIC is refused.
  get_target_property(type ${target} TYPE)
  if(type STREQUAL EXECUTABLE)
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${target} PRIVATE -fPIC)
  endif()
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>)
  _hybrid_optimise(${target} ${kind})
  target_precompile_headers(${target} REUSE_FROM hybrid_pch_${kind})
endfunction()

# Without sources the room is empty so far, but may already be linked.
function(hybrid_compiler_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LINK")
  if(NOT arg_UNPARSED_ARGUMENTS)
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE hybrid_compiler_settings ${arg_LINK})
    return()
  endif()
  add_library(${name} STATIC ${arg_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PUBLIC hybrid_compiler_settings ${arg_LINK})
  add_dependencies(${name} hybrid-generated)
  _hybrid_use_pch(${name} compiler)
endfunction()

function(hybrid_runtime_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LINK")
  add_library(${name} ${arg_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE hybrid_runtime_settings ${arg_LINK} Threads::Threads)
  _hybrid_use_pch(${name} runtime)
endfunction()

function(hybrid_tool name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "RUNTIME" "" "LINK")
  add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
  if(arg_RUNTIME)
    target_link_libraries(${name} PRIVATE hybrid_runtime_settings ${arg_LINK} Threads::Threads)
    _hybrid_use_pch(${name} runtime_tool)
  else()
    target_link_libraries(${name} PRIVATE hybrid_compiler_settings ${arg_LINK})
    add_dependencies(${name} hybrid-generated)
    _hybrid_use_pch(${name} compiler)
  endif()
  set_property(GLOBAL APPEND PROPERTY HYBRID_TEST_TOOLS ${name})
  install(TARGETS ${name} RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endfunction()

# One program per room and one ctest entry per program: starting a program that
# loads MLIR costs more than most tests.
function(hybrid_unit_test name)
  if(NOT HYBRID_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 arg "RUNTIME" "" "LINK")
  add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
  if(arg_RUNTIME)
    target_link_libraries(${name} PRIVATE hybrid_runtime_settings ${arg_LINK} Threads::Threads
      GTest::gtest GTest::gtest_main)
    _hybrid_use_pch(${name} runtime_test)
  else()
    target_link_libraries(${name} PRIVATE hybrid_compiler_settings ${arg_LINK}
      GTest::gtest GTest::gtest_main)
    add_dependencies(${name} hybrid-generated)
    _hybrid_use_pch(${name} compiler_test)
  endif()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/test/unit/bin")
  add_test(NAME ${name} COMMAND ${name} --gtest_brief=1)
  set_property(GLOBAL APPEND PROPERTY HYBRID_UNIT_TESTS ${name})
endfunction()
