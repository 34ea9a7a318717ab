# What `cmake --install` gives a program that runs compiled models: the runtime
# as a shared library, its headers, a CMake package and a pkg-config file. The
# tools install themselves (hybrid_tool).

if(NOT TARGET hybrid_runtime)
  return()
endif()

# The same objects as the static library that our tools and tests link.
add_library(hybrid_runtime_shared SHARED $<TARGET_OBJECTS:hybrid_runtime>)
target_link_libraries(hybrid_runtime_shared PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
target_link_options(hybrid_runtime_shared PRIVATE -Wl,-z,defs)
target_include_directories(hybrid_runtime_shared INTERFACE
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
set_target_properties(hybrid_runtime_shared PROPERTIES
  OUTPUT_NAME hybrid_runtime EXPORT_NAME runtime LINKER_LANGUAGE CXX
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})

include(CMakePackageConfigHelpers)
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/hybridc")
install(TARGETS hybrid_runtime_shared EXPORT hybridcTargets
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT runtime)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/runtime/include/hybrid"
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT runtime)
install(EXPORT hybridcTargets NAMESPACE hybrid:: DESTINATION "${package_dir}"
  FILE hybridcConfig.cmake COMPONENT runtime)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/hybridcConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/hybridcConfigVersion.cmake"
  DESTINATION "${package_dir}" COMPONENT runtime)

configure_file("${PROJECT_SOURCE_DIR}/cmake/hybridc.pc.in" "${PROJECT_BINARY_DIR}/hybridc.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/hybridc.pc"
  DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT runtime)
