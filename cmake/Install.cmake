# cmake --install: the programs, the backend modules, and what a module of one's own is compiled
# against.
include(CMakePackageConfigHelpers)
install(TARGETS quintet RUNTIME DESTINATION bin)
if(TARGET quintet-conformance)
  install(TARGETS quintet-conformance RUNTIME DESTINATION bin)
endif()
if(QUINTET_OPENCL)
  install(TARGETS quintet_opencl LIBRARY DESTINATION lib/quintet)
endif()
install(TARGETS quintet_core quintet_backends ARCHIVE DESTINATION lib/quintet)
install(FILES include/quintet/backend.h include/quintet/devices.h include/quintet/error.h DESTINATION include/quintet)
install(DIRECTORY src/core DESTINATION include/quintet/sdk FILES_MATCHING PATTERN "*.h")
install(FILES src/backends/device.h DESTINATION include/quintet/sdk/backends)
install(FILES src/backends/reference/reference_device.h DESTINATION include/quintet/sdk/backends/reference)
configure_package_config_file(cmake/quintet-config.cmake.in "${PROJECT_BINARY_DIR}/quintet-config.cmake"
  INSTALL_DESTINATION lib/cmake/quintet NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
install(FILES "${PROJECT_BINARY_DIR}/quintet-config.cmake" DESTINATION lib/cmake/quintet)
