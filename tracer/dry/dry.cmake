# The stand-in for a CUDA device, preloaded into a program by `tidepool record --dry`. It takes the name of the driver's
# library, so that whoever opens that by name gets it too.
file(GLOB standin_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/standin/*.cpp ${CMAKE_CURRENT_LIST_DIR}/*.cpp)
add_library(tidepool_dry MODULE ${standin_sources} ${CMAKE_SOURCE_DIR}/tracer/raw/writer.cpp
  ${CMAKE_SOURCE_DIR}/tracer/cupti/live_ranges.cpp ${CMAKE_SOURCE_DIR}/tracer/cupti/parameter_scan.cpp
  ${CMAKE_SOURCE_DIR}/tracer/cupti/tensor_maps.cpp ${CMAKE_SOURCE_DIR}/tracer/cupti/kernel_names.cpp
  ${CMAKE_SOURCE_DIR}/traces/nearest.cpp ${CMAKE_SOURCE_DIR}/traces/quantity.cpp)
target_link_libraries(tidepool_dry PRIVATE tidepool_settings)
set_target_properties(tidepool_dry PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR} PREFIX lib
  CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
target_link_options(tidepool_dry PRIVATE -Wl,-soname,libcuda.so.1)
# It runs inside programs that know nothing of sanitizers.
if(TIDEPOOL_SANITIZE)
  target_compile_options(tidepool_dry PRIVATE -fno-sanitize=all)
  target_link_options(tidepool_dry PRIVATE -fno-sanitize=all)
endif()
