# Compiler, linker, cache and the packages that the whole tree is built with.

set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")

include(GNUInstallDirs)

# MLIR's CMake package has no version file, so the version is checked below.
find_package(MLIR REQUIRED CONFIG HINTS /usr/lib/llvm-22)
if(NOT LLVM_VERSION_MAJOR EQUAL 22)
  message(FATAL_ERROR "hybridc needs LLVM and MLIR 22, found ${LLVM_PACKAGE_VERSION} "
    "in ${LLVM_DIR}; install libmlir-22-dev, mlir-22-tools and llvm-22-dev")
endif()

if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  find_program(HYBRID_LLD NAMES ld.lld HINTS "${LLVM_TOOLS_BINARY_DIR}")
  if(HYBRID_LLD)
    add_link_options("--ld-path=${HYBRID_LLD}")
  endif()
endif()

# One cache serves every checkout of the tree: paths below it are hashed relative
# to it, objects name no folder, and a precompiled header, which does hold paths,
# is known by the checksum that HybridTargets writes beside it.
find_program(HYBRID_CCACHE ccache)
if(HYBRID_CCACHE AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  foreach(language C CXX)
    set(CMAKE_${language}_COMPILER_LAUNCHER
      "${CMAKE_COMMAND}" -E env
      "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1 CCACHE_PCH_EXTSUM=1
      "CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime"
      "${HYBRID_CCACHE}")
  endforeach()
  add_compile_options(-fdebug-compilation-dir=.)
  # CMake also names the header's text, by a path that ccache does not rewrite.
  set(CMAKE_CXX_COMPILE_OPTIONS_USE_PCH -Xclang -include-pch -Xclang <PCH_FILE>)
endif()

if(HYBRID_SANITIZE)
  add_compile_options(-fsanitize=address,undefined -fno-sanitize=vptr,function
    -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
endif()
