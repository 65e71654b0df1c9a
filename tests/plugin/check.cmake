# Installs Tidepool, builds the example plug-in against what was installed, and loads it.
#   cmake -DBUILD=<build folder> -DSCRATCH=<folder to write in> -DCXX=<compiler> -DVERSION=<of Tidepool> -P check.cmake
set(program ${SCRATCH}/prefix/bin/tidepool)

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE out)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${ARGN}: exit code ${code}\n${out}")
  endif()
endfunction()

# The program's output and exit code must be these.
function(expect code text)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE seen_code OUTPUT_VARIABLE seen ERROR_VARIABLE seen)
  if(NOT seen_code EQUAL code OR NOT seen STREQUAL text)
    message(FATAL_ERROR "${ARGN}:\nexit code ${seen_code}, expected ${code}\n${seen}\nexpected\n${text}")
  endif()
endfunction()

function(build_example name flags)
  run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR} -B ${SCRATCH}/${name} -G Ninja -DCMAKE_PREFIX_PATH=${SCRATCH}/prefix
    -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_CXX_FLAGS=${flags})
  run(${CMAKE_COMMAND} --build ${SCRATCH}/${name})
endfunction()

file(REMOVE_RECURSE ${SCRATCH})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${SCRATCH}/prefix)
build_example(right "")
build_example(wrong "-UTIDEPOOL_VERSION -DTIDEPOOL_VERSION='\"0.0.9\"'")
set(right ${SCRATCH}/right/libexample_fifo.so)
set(wrong ${SCRATCH}/wrong/libexample_fifo.so)
set(listed "example-fifo (remat)\n  drops what became evictable first\n  from: an example for writers of plug-ins\n")

expect(0 "${listed}" ${program} --plugin ${right} policies example-fifo)
expect(0 "${listed}" ${program} policies example-fifo --plugin ${right})
expect(0 "${listed}" ${CMAKE_COMMAND} -E env TIDEPOOL_PLUGINS=${right}:${right} ${program} policies example-fifo)
expect(2 "tidepool: ${wrong}: built against tidepool 0.0.9; this is tidepool ${VERSION}\n"
  ${program} policies --plugin ${wrong})
expect(2 "tidepool: ${SCRATCH}/none.so: no such file; expected a shared library with policies\n"
  ${program} policies --plugin ${SCRATCH}/none.so)

# The policy that README.md shows compiles as it stands there.
file(READ ${CMAKE_CURRENT_LIST_DIR}/../../README.md readme)
string(REGEX MATCH "```cpp\n([^`]*)```" found "${readme}")
if(NOT CMAKE_MATCH_1 MATCHES "RegisterPolicy")
  message(FATAL_ERROR "README.md shows no policy")
endif()
file(WRITE ${SCRATCH}/readme.cpp "${CMAKE_MATCH_1}")
run(${CXX} -std=c++20 -Wall -Wextra -Werror -fsyntax-only -I${SCRATCH}/prefix/include/tidepool
  "-DTIDEPOOL_VERSION=\"${VERSION}\"" ${SCRATCH}/readme.cpp)
