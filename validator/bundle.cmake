# The bundle is a folder. With it, one can record, simulate, validate and run live jobs on a machine that has the C
# library, Python and PyTorch, but none of the libraries that Tidepool is linked with.
#   cmake --build build --target bundle && cmake --install build --component bundle --prefix FOLDER
# The bundle uses RPATH, not RUNPATH. With RPATH, the loader also finds the libraries that the bundle's libraries need.
set(bundled_targets tidepool tidepool_allocator tidepool_dry tidepool_dry_nvml)
if(TARGET tidepool_inject)
  list(APPEND bundled_targets tidepool_inject)
endif()
foreach(target ${bundled_targets})
  target_link_options(${target} PRIVATE -Wl,--disable-new-dtags)
endforeach()
set_target_properties(tidepool PROPERTIES INSTALL_RPATH "$ORIGIN/../lib")
set_target_properties(tidepool_allocator PROPERTIES INSTALL_RPATH "$ORIGIN/../../../lib")
set_target_properties(tidepool_dry PROPERTIES INSTALL_RPATH "$ORIGIN/..")
add_custom_target(bundle DEPENDS ${bundled_targets})

set(bundled COMPONENT bundle EXCLUDE_FROM_ALL)
set(modules ${bundled_targets})
list(REMOVE_ITEM modules tidepool tidepool_allocator)
install(TARGETS tidepool RUNTIME_DEPENDENCY_SET bundled RUNTIME DESTINATION bin ${bundled})
install(TARGETS tidepool_allocator RUNTIME_DEPENDENCY_SET bundled LIBRARY DESTINATION share/tidepool/python ${bundled})
install(TARGETS ${modules} RUNTIME_DEPENDENCY_SET bundled LIBRARY DESTINATION lib/tidepool ${bundled})
install(DIRECTORY ${CMAKE_BINARY_DIR}/driver DESTINATION lib/tidepool ${bundled})
install(RUNTIME_DEPENDENCY_SET bundled PRE_EXCLUDE_REGEXES "^ld-linux" "^lib(c|m|dl|rt|pthread|cuda)\\.so"
  DESTINATION lib ${bundled})
foreach(package ${TIDEPOOL_PYTHON_PACKAGES})
  install(DIRECTORY ${package} DESTINATION share/tidepool/python ${bundled} PATTERN __pycache__ EXCLUDE)
endforeach()
install(DIRECTORY traces/samples DESTINATION traces ${bundled} FILES_MATCHING PATTERN "*.tide")
install(DIRECTORY tests/gpu DESTINATION tests ${bundled} USE_SOURCE_PERMISSIONS
  FILES_MATCHING PATTERN "*.py" PATTERN "*.sh" PATTERN "__pycache__" EXCLUDE)
if(NOT TIDEPOOL_NVCC)  # the machine with the GPU compiles the kernels; the program finds them in lib/tidepool
  install(FILES validator/cuda/kernels.cu validator/cuda/kernels.hpp DESTINATION share/tidepool/kernels/validator/cuda ${bundled})
  install(FILES validator/execution/mix.hpp DESTINATION share/tidepool/kernels/validator/execution ${bundled})
endif()
