# Compiles the kernels for the GPU architectures that are named here and puts them into the program. For later
# architectures, the driver compiles the code for compute_90.
if(TIDEPOOL_NVCC)
  set(kernels ${CMAKE_BINARY_DIR}/tidepool_kernels.fatbin)
  set(kernel_source ${CMAKE_SOURCE_DIR}/validator/cuda/kernels.cu)
  add_custom_command(OUTPUT ${kernels} VERBATIM
    COMMAND ${TIDEPOOL_NVCC} -std=c++20 -fatbin --expt-relaxed-constexpr -Werror all-warnings -I ${CMAKE_SOURCE_DIR}
      -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90 -gencode arch=compute_90,code=compute_90
      -o ${kernels} ${kernel_source}
    DEPENDS ${kernel_source} ${CMAKE_SOURCE_DIR}/validator/cuda/kernels.hpp ${CMAKE_SOURCE_DIR}/validator/execution/mix.hpp)
  set_property(SOURCE validator/cuda/kernel_image.cpp APPEND PROPERTY OBJECT_DEPENDS ${kernels})
  set_property(SOURCE validator/cuda/kernel_image.cpp APPEND PROPERTY COMPILE_DEFINITIONS TIDEPOOL_KERNELS="${kernels}")
endif()
if(EXISTS /usr/local/cuda/include/cuda.h)
  set_property(SOURCE validator/cuda/header_check.cpp APPEND PROPERTY INCLUDE_DIRECTORIES /usr/local/cuda/include)
endif()
