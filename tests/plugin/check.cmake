# Installs Tidepool, builds the example plug-in against the installation, and loads it.
#   cmake -DBUILD=<build folder> -DSCRATCH=<folder to write in> -DCXX=<compiler>
#     -DINTERFACE=<version and hash of the headers> -P check.cmake
set(program ${SCRATCH}/prefix/bin/tidepool)

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE out)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${ARGN}: exit code ${code}\n${out}")
  endif()
endfunction()

# Fails unless the command prints `text` and ends with `code`.
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
build_example(wrong "-UTIDEPOOL_INTERFACE -DTIDEPOOL_INTERFACE='\"0.0.9\"'")
set(right ${SCRATCH}/right/libexample_fifo.so)
set(wrong ${SCRATCH}/wrong/libexample_fifo.so)
set(listed "example-fifo (remat)\n  drops what became evictable first\n  from: an example for writers of plug-ins\n")

expect(0 "${listed}" ${program} --plugin ${right} policies example-fifo)
expect(0 "${listed}" ${program} policies example-fifo --plugin ${right})
expect(0 "${listed}" ${CMAKE_COMMAND} -E env TIDEPOOL_PLUGINS=${right}:${right} ${program} policies example-fifo)
expect(2 "tidepool: ${wrong}: built against tidepool 0.0.9; this is tidepool ${INTERFACE}\n"
  ${program} policies --plugin ${wrong})
expect(2 "tidepool: ${SCRATCH}/none.so: no such file; expected a shared library with pools or policies\n"
  ${program} policies --plugin ${SCRATCH}/none.so)

# The plug-in's policy decides in a run. Two buffers of 1 MiB fit, and three do not: before op b, the output of op a is
# dropped, and op a runs again (1 us) before op d.
file(WRITE ${SCRATCH}/step.jsonl [==[
{"tidepool":1}
{"alloc":0,"size_bytes":1048576}
{"run":"load","kind":"source","uses":[[0,"write","schema"]]}
{"alloc":1,"size_bytes":1048576}
{"run":"a","uses":[[0,"read","schema"],[1,"write","schema"]],"duration_ns":1000}
{"alloc":2,"size_bytes":1048576}
{"run":"b","uses":[[0,"read","schema"],[2,"write","schema"]],"duration_ns":1000}
{"alloc":3,"size_bytes":512}
{"run":"c","uses":[[2,"read","schema"],[3,"write","schema"]],"duration_ns":1000}
{"free":2}
{"alloc":4,"size_bytes":512}
{"run":"d","uses":[[1,"read","schema"],[4,"write","schema"]],"duration_ns":1000}
{"output_buffers":[3,4]}
]==])
execute_process(COMMAND ${program} simulate ${SCRATCH}/step.jsonl --policy example-fifo --capacity 2052KiB --json
  --plugin ${right} OUTPUT_VARIABLE result ERROR_VARIABLE errors)
foreach(pair outcome=ok baseline_ns=4000 makespan_ns=5000 recompute_count=1 recompute_ns=1000)
  string(REPLACE "=" ";" pair ${pair})
  list(GET pair 0 key)
  list(GET pair 1 expected)
  string(JSON seen ERROR_VARIABLE no_json GET "${result}" ${key})
  if(NOT seen STREQUAL expected)
    message(FATAL_ERROR "${key} is ${seen}, expected ${expected}\n${result}${errors}")
  endif()
endforeach()

# A plug-in with a mistake is named, and so is the mistake.
run(${CMAKE_COMMAND} --build ${SCRATCH}/right --target mistakes)
set(mistakes ${SCRATCH}/right/libmistakes.so)
function(expect_mistake mistake code text)
  expect(${code} "${text}" ${CMAKE_COMMAND} -E env MISTAKE=${mistake} ${program} --plugin ${mistakes} ${ARGN})
endfunction()
expect_mistake(none 0 "mistake (remat)\n  does nothing\n  from: an example of mistakes\n" policies mistake)
expect_mistake(name 2 "tidepool: ${mistakes}: registers policy 'a+b'; expected a name of letters, digits, - and _\n" policies)
expect_mistake(make 2
  "tidepool: ${mistakes}: registers policy 'mistake' without make; expected a function that makes one\n" policies)
expect_mistake(start 2 "tidepool: ${mistakes}: threw an exception while it was loaded: no table of costs\n" policies)
expect_mistake(nothing 1 "${SCRATCH}/step.jsonl: mistake on best-fit, a100-pcie4, 2.004 MiB (0.668x the peak)
outcome     error: 'mistake' was registered with a function that makes nothing\n"
  simulate ${SCRATCH}/step.jsonl --policy mistake --capacity 2052KiB)
