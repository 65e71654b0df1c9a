# The allocator that a live PyTorch job loads. It exports only its interface. Of the archive it contains only the files
# that it needs: they are compiled alone (tidepool_alone), so that no other file comes with them. It may need no library
# but those that are linked here.
add_library(tidepool_allocator_parts STATIC EXCLUDE_FROM_ALL $<TARGET_OBJECTS:tidepool_traces>
  $<TARGET_OBJECTS:tidepool_simulator> $<TARGET_OBJECTS:tidepool_validator>)
set_target_properties(tidepool_allocator_parts PROPERTIES LINKER_LANGUAGE CXX)
file(GLOB allocator_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/validator/live/allocator/*.cpp)
add_library(tidepool_allocator MODULE ${allocator_sources})
target_include_directories(tidepool_allocator PRIVATE ${CMAKE_SOURCE_DIR})
target_compile_options(tidepool_allocator PRIVATE $<TARGET_PROPERTY:tidepool_settings,INTERFACE_COMPILE_OPTIONS>)
target_link_libraries(tidepool_allocator PRIVATE tidepool_allocator_parts fmt::fmt simdjson::simdjson ZLIB::ZLIB
  LibLZMA::LibLZMA ${ZSTD_LIBRARY} Threads::Threads ${CMAKE_DL_LIBS})
tidepool_sanitize(tidepool_allocator PRIVATE)
set_target_properties(tidepool_allocator PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/python)
target_link_options(tidepool_allocator PRIVATE -Wl,--exclude-libs,ALL -Wl,--gc-sections -Wl,--as-needed)
if(NOT TIDEPOOL_SANITIZE)  # the program has the sanitizers' functions
  target_link_options(tidepool_allocator PRIVATE -Wl,-z,defs)
endif()
install(TARGETS tidepool_allocator LIBRARY DESTINATION share/tidepool/python)

# Packages that run inside the user's Python. They are in the folder `python` next to the program, or in
# share/tidepool/python of an installation.
set(TIDEPOOL_PYTHON_PACKAGES tracer/torch/tidepool_torch validator/live/tidepool_live validator/live/inject)
foreach(package ${TIDEPOOL_PYTHON_PACKAGES})
  get_filename_component(name ${package} NAME)
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/python)
  file(CREATE_LINK ${CMAKE_SOURCE_DIR}/${package} ${CMAKE_BINARY_DIR}/python/${name} SYMBOLIC)
  install(DIRECTORY ${package} DESTINATION share/tidepool/python PATTERN __pycache__ EXCLUDE)
endforeach()
# The sources of the core, which the recorder builds for the PyTorch of a job.
install(DIRECTORY tracer/native DESTINATION share/tidepool/python/tidepool_torch/tracer
  FILES_MATCHING PATTERN *.cpp PATTERN *.hpp)
