# Messages of other programs' files in protobuf. Each schema has only what is read, so that little code is generated.
# Only the files that include a message are compiled with its folder, so that compiler caches keep all others.
file(GLOB schemas CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/traces/import/schemas/*.proto)
set(generated ${CMAKE_BINARY_DIR}/schemas)
foreach(schema ${schemas})
  get_filename_component(name ${schema} NAME_WE)
  set(outputs ${generated}/${name}.pb.cc ${generated}/${name}.pb.h)
  add_custom_command(OUTPUT ${outputs} COMMAND ${CMAKE_COMMAND} -E make_directory ${generated}
    COMMAND protobuf::protoc --cpp_out=${generated} -I ${CMAKE_SOURCE_DIR}/traces/import/schemas ${schema}
    DEPENDS ${schema} VERBATIM)
  list(APPEND schema_sources ${outputs})
  set_source_files_properties(traces/import/${name}.cpp PROPERTIES COMPILE_OPTIONS "-isystem;${CMAKE_BINARY_DIR}")
endforeach()
add_library(tidepool_schemas STATIC ${schema_sources})
target_link_libraries(tidepool_schemas PUBLIC protobuf::libprotobuf)
tidepool_sanitize(tidepool_schemas PRIVATE)
target_link_libraries(tidepool_traces PRIVATE tidepool_schemas)
