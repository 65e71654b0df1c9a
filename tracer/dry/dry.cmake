# The dry device, which a dry run preloads into a program. Its soname is that of the driver's library,
# libcuda.so.1, so programs that open the driver by this name get the dry device too. Besides the C library it needs only
# zstd, because it runs inside other programs.
file(GLOB device_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/device/*.cpp ${CMAKE_CURRENT_LIST_DIR}/ranks/*.cpp)
add_library(tidepool_dry MODULE ${device_sources} ${CMAKE_CURRENT_LIST_DIR}/cubin.cpp ${CMAKE_CURRENT_LIST_DIR}/lz4_block.cpp
  ${CMAKE_CURRENT_LIST_DIR}/device_memory.cpp ${CMAKE_CURRENT_LIST_DIR}/first_fit.cpp
  ${CMAKE_CURRENT_LIST_DIR}/top_down.cpp
  ${CMAKE_CURRENT_LIST_DIR}/occupancy.cpp ${CMAKE_CURRENT_LIST_DIR}/size_addition.cpp ${CMAKE_CURRENT_LIST_DIR}/size_reduction.cpp
  ${CMAKE_CURRENT_LIST_DIR}/preset.cpp
  ${CMAKE_SOURCE_DIR}/tracer/raw/writer.cpp ${CMAKE_SOURCE_DIR}/tracer/cupti/live_ranges.cpp
  ${CMAKE_SOURCE_DIR}/tracer/cupti/parameter_scan.cpp ${CMAKE_SOURCE_DIR}/tracer/cupti/tensor_maps.cpp
  ${CMAKE_SOURCE_DIR}/tracer/cupti/kernel_names.cpp
  ${CMAKE_SOURCE_DIR}/tracer/cupti/torch_kernels.cpp ${CMAKE_SOURCE_DIR}/traces/base/nearest.cpp
  ${CMAKE_SOURCE_DIR}/traces/base/quantity.cpp)
tidepool_unite(tidepool_dry)
# NCCL's names are those of the runtime.
set_source_files_properties(tracer/dry/device/nccl_collective.cpp tracer/dry/device/nccl_communicator.cpp
  PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
target_include_directories(tidepool_dry PRIVATE ${CMAKE_SOURCE_DIR})
target_include_directories(tidepool_dry SYSTEM PRIVATE ${XXHASH_INCLUDE})
target_compile_options(tidepool_dry PRIVATE -Wall -Wextra -Wpedantic -Wconversion -Wshadow
  $<$<BOOL:${TIDEPOOL_WERROR}>:-Werror> $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)  # GCC bug 105651
target_link_libraries(tidepool_dry PRIVATE fmt::fmt-header-only ${ZSTD_LIBRARY} Threads::Threads ${CMAKE_DL_LIBS})
set_target_properties(tidepool_dry PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}
  CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
target_link_options(tidepool_dry PRIVATE -Wl,-soname,libcuda.so.1 -static-libstdc++ -static-libgcc
  -Wl,--version-script=${CMAKE_CURRENT_LIST_DIR}/exports.map)
set_target_properties(tidepool_dry PROPERTIES LINK_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/exports.map)
# Triton links its helper with the driver, which it finds by one of these names in $TRITON_LIBCUDA_PATH. The folder has
# nothing else, so that no other program finds the dry device by accident.
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/driver)
foreach(name libcuda.so libcuda.so.1)
  file(CREATE_LINK ../libtidepool_dry.so ${CMAKE_BINARY_DIR}/driver/${name} SYMBOLIC)
endforeach()
install(DIRECTORY ${CMAKE_BINARY_DIR}/driver DESTINATION ${CMAKE_INSTALL_LIBDIR}/tidepool)
add_library(tidepool_dry_nvml MODULE ${CMAKE_CURRENT_LIST_DIR}/nvml/nvml.cpp)
target_include_directories(tidepool_dry_nvml PRIVATE ${CMAKE_SOURCE_DIR})
set_target_properties(tidepool_dry_nvml PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}
  CXX_VISIBILITY_PRESET hidden)
target_link_options(tidepool_dry_nvml PRIVATE -Wl,-soname,libnvidia-ml.so.1)
add_dependencies(tidepool tidepool_dry tidepool_dry_nvml)
install(TARGETS tidepool_dry tidepool_dry_nvml LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/tidepool)
