# Tests that are scripts: of the program, of the Python parts, and of the documents. Those that take a minute have a
# COST, so that ctest begins with them, and no core is idle at the end.
add_test(NAME "a failed test does not count as skipped, however many of its checks fail"
  COMMAND sh -c "\"$1\" 'four checks fail' >/dev/null; test $? = 1" sh $<TARGET_FILE:tidepool_tests>)
add_test(NAME "a sweep by a real Slurm gives the same results"
  COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/slurm/run.sh $<TARGET_FILE:tidepool>)
set_tests_properties("a sweep by a real Slurm gives the same results" PROPERTIES
  SKIP_REGULAR_EXPRESSION "skipped:" PROCESSORS 2 COST 2 TIMEOUT 900)
if(TIDEPOOL_BUNDLE)
  set(bundle_check ${CMAKE_CURRENT_BINARY_DIR}/bundle-check)
  add_test(NAME "the bundle installs, and needs nothing but the C library"
    COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/bundle/install.sh ${CMAKE_COMMAND} ${CMAKE_BINARY_DIR} ${bundle_check})
  set_tests_properties("the bundle installs, and needs nothing but the C library" PROPERTIES FIXTURES_SETUP bundle)
  add_test(NAME "the bundle runs in an empty root" COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/bundle/empty_root.sh ${bundle_check})
  set_tests_properties("the bundle runs in an empty root" PROPERTIES FIXTURES_REQUIRED bundle
    SKIP_REGULAR_EXPRESSION "skipped:")
endif()
# A preloaded library that makes calls of the C library fail in the unchanged program.
add_library(tidepool_faults SHARED faults/faults.cpp)
target_compile_features(tidepool_faults PRIVATE cxx_std_20)
target_compile_options(tidepool_faults PRIVATE -Wall -Wextra -Wpedantic -Wconversion -Wshadow)
target_link_libraries(tidepool_faults PRIVATE ${CMAKE_DL_LIBS})
set_target_properties(tidepool_faults PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
add_dependencies(tidepool_tests tidepool_faults)
if(Python3_Interpreter_FOUND)
  add_test(NAME "a failed call is reported, and leaves nothing half-written"
    COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/faults/faults.py --program $<TARGET_FILE:tidepool>
      --library $<TARGET_FILE:tidepool_faults> --points 4)
  add_test(NAME "memory that runs out in a destructor of a report's JSON is reported"
    COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/faults/faults.py --program $<TARGET_FILE:tidepool>
      --library $<TARGET_FILE:tidepool_faults> --points 1 --last 60 report)
  add_test(NAME "memory that runs out while record makes a trace leaves the job's exit code"
    COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/faults/faults.py --program $<TARGET_FILE:tidepool>
      --library $<TARGET_FILE:tidepool_faults> --points 1 --last 150 record-failed)
  add_test(NAME "a killed sweep goes on to the same results"
    COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/nightly/kills.py --program $<TARGET_FILE:tidepool> --kills 5)
  # TIDEPOOL_TORCH_PYTHON names the Python that has PyTorch, if it is another one.
  set(torch_python ${Python3_EXECUTABLE})
  if(DEFINED ENV{TIDEPOOL_TORCH_PYTHON})
    set(torch_python $ENV{TIDEPOOL_TORCH_PYTHON})
  endif()
  if(TIDEPOOL_BUNDLE)
    add_test(NAME "the bundle records and runs PyTorch jobs"
      COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/bundle/torch_jobs.sh ${bundle_check} ${torch_python})
    set_tests_properties("the bundle records and runs PyTorch jobs" PROPERTIES FIXTURES_REQUIRED bundle
      SKIP_REGULAR_EXPRESSION "skipped:")
    add_test(NAME "the day with a GPU runs from the bundle on the fake" COMMAND
      ${CMAKE_CURRENT_SOURCE_DIR}/bundle/gpu_day.sh ${bundle_check} ${CMAKE_BINARY_DIR}/fake_cuda ${torch_python})
    set_tests_properties("the day with a GPU runs from the bundle on the fake" PROPERTIES FIXTURES_REQUIRED bundle
      COST 2 TIMEOUT 4500)
  endif()
  add_test(NAME "the native recorder of PyTorch is built" COMMAND ${torch_python} ${CMAKE_CURRENT_SOURCE_DIR}/recording/build_native.py)
  set_tests_properties("the native recorder of PyTorch is built" PROPERTIES FIXTURES_SETUP native COST 3)
  add_test(NAME "the own tests of the PyTorch recorder pass"
    COMMAND ${torch_python} -m unittest discover -v -s ${CMAKE_SOURCE_DIR}/tracer/torch/tests)
  add_test(NAME "op times of measured steps are within 6.5 % in the mean"
    COMMAND ${torch_python} -m unittest discover -v -s ${CMAKE_CURRENT_SOURCE_DIR}/recording -p op_times_table_test.py)
  foreach(way Record Run Dry)
    add_test(NAME "whole PyTorch jobs: ${way}" COMMAND ${torch_python} -m unittest -v matrix_test.${way}
      WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}/recording)
  endforeach()
  add_test(NAME "PyTorch jobs cannot tell that they are recorded" COMMAND ${torch_python} -m unittest -v guests_test
    WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}/recording)
  add_test(NAME "the iterations of PyTorch jobs are found" COMMAND ${torch_python} -m unittest -v iterations_test
    WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}/recording)
  add_test(NAME "early updates of a PyTorch job are as advised" COMMAND ${torch_python} -m unittest -v early_updates_test
    WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}/recording)
  add_test(NAME "advice for several models of a PyTorch job holds for all" COMMAND ${torch_python} -m unittest -v several_models_test
    WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}/recording)
  add_test(NAME "a sweep over ranks and options of a job is a row for each point" COMMAND ${torch_python} -m unittest -v rank_sweep_test
    WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}/recording)
  foreach(jobs matrix guests edges)
    add_custom_command(TARGET nightly POST_BUILD COMMAND ${CMAKE_COMMAND} -E env TIDEPOOL_NIGHTLY=1
      TIDEPOOL_PROGRAM=$<TARGET_FILE:tidepool> ${torch_python} -m unittest discover -v
      -s ${CMAKE_CURRENT_SOURCE_DIR}/recording -p ${jobs}_test.py)
  endforeach()
  if(TARGET tidepool_python)
    add_test(NAME "the Python package says what the program says"
      COMMAND ${Python3_EXECUTABLE} -m unittest discover -v -s ${CMAKE_CURRENT_SOURCE_DIR}/python -p "*_test.py")
    set_tests_properties("the Python package says what the program says" PROPERTIES SKIP_REGULAR_EXPRESSION "OK \\(skipped=" COST 1
      ENVIRONMENT "PYTHONPATH=${CMAKE_BINARY_DIR}/python;TIDEPOOL=$<TARGET_FILE:tidepool>")
    execute_process(COMMAND ${Python3_EXECUTABLE} -c "import matplotlib, pandas" RESULT_VARIABLE missing OUTPUT_QUIET ERROR_QUIET)
    if(NOT missing)
      set(package --package ${CMAKE_BINARY_DIR}/python)
    endif()
  endif()
  add_test(NAME "imports count what JAX and TensorFlow count" COMMAND ${CMAKE_COMMAND} -E env
    TIDEPOOL_PROGRAM=$<TARGET_FILE:tidepool> ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/formats/other_programs_test.py Jobs)
  set_tests_properties("imports count what JAX and TensorFlow count" PROPERTIES SKIP_REGULAR_EXPRESSION "OK \\(skipped=")
  add_test(NAME "imports count what protoc and Python's reader of JSON count" COMMAND ${CMAKE_COMMAND} -E env
    TIDEPOOL_PROGRAM=$<TARGET_FILE:tidepool> ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/formats/other_programs_test.py Counts)
  add_test(NAME "small inputs that once gave wrong answers give the right ones" COMMAND ${CMAKE_COMMAND} -E env
    TIDEPOOL_PROGRAM=$<TARGET_FILE:tidepool> ${Python3_EXECUTABLE} -m unittest -v edges_test.Files
    WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}/recording)
  set_tests_properties("small inputs that once gave wrong answers give the right ones" PROPERTIES
    SKIP_REGULAR_EXPRESSION "OK \\(skipped=")
  add_test(NAME "public inputs are fetched at fixed commits and checked"
    COMMAND ${Python3_EXECUTABLE} -m unittest discover -v -s ${CMAKE_CURRENT_SOURCE_DIR}/inputs -p "*_test.py")
  add_test(NAME "results of nightly runs are read from their logs"
    COMMAND ${Python3_EXECUTABLE} -m unittest discover -v -s ${CMAKE_CURRENT_SOURCE_DIR}/nightly -p "*_test.py")
  add_test(NAME "published instances are checked without the program"
    COMMAND ${Python3_EXECUTABLE} -m unittest discover -v -s ${CMAKE_CURRENT_SOURCE_DIR}/instances -p "*_test.py")
  add_test(NAME "scripts name the rows of sweeps"
    COMMAND ${Python3_EXECUTABLE} -m doctest ${CMAKE_SOURCE_DIR}/notebooks/sweep_rows.py)
  add_test(NAME "a dry recording is reduced to the buffers of a CPU recording"
    COMMAND ${Python3_EXECUTABLE} -m doctest ${CMAKE_CURRENT_SOURCE_DIR}/recording/like_cpu.py)
  add_test(NAME "a table of levers takes each number from a run with the options asked for"
    COMMAND ${Python3_EXECUTABLE} -m doctest ${CMAKE_CURRENT_SOURCE_DIR}/levers/levers_table.py)
  add_test(NAME "the examples in the model of GPT iterations hold"
    COMMAND ${Python3_EXECUTABLE} -m doctest ${CMAKE_SOURCE_DIR}/notebooks/gpt_iteration.py)
  add_test(NAME "the model of GPT iterations is within 6.5 % of measured ones"
    COMMAND ${Python3_EXECUTABLE} -m unittest discover -v -s ${CMAKE_CURRENT_SOURCE_DIR}/recording -p gpt_iteration_test.py)
  set(check_documents ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/docs/documents_test.py --program $<TARGET_FILE:tidepool>)
  add_test(NAME "links in the documents lead somewhere" COMMAND ${check_documents} links)
  file(GLOB guides CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/notebooks/guide/*.md)
  foreach(document README.md notebooks/README.md ${guides})
    add_test(NAME "the commands of ${document} do what they show"
      COMMAND ${check_documents} ${package} commands ${CMAKE_SOURCE_DIR}/${document})
  endforeach()
  add_test(NAME "the documents make a site" COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/notebooks/make_site.py
    --program $<TARGET_FILE:tidepool> -o ${CMAKE_CURRENT_BINARY_DIR}/site)
  set_tests_properties("the documents make a site" PROPERTIES SKIP_REGULAR_EXPRESSION "(mkdocs|Pygments) is not installed")
  add_test(NAME "a plan is carried out on a live PyTorch job"
    COMMAND ${torch_python} -m unittest discover -v -s ${CMAKE_SOURCE_DIR}/validator/live/tests)
  add_test(NAME "a plan is carried out on a live PyTorch job by a dispatch mode"
    COMMAND ${CMAKE_COMMAND} -E env TIDEPOOL_NATIVE=off
    ${torch_python} -m unittest discover -v -s ${CMAKE_SOURCE_DIR}/validator/live/tests)
  set_tests_properties("the own tests of the PyTorch recorder pass" "a plan is carried out on a live PyTorch job"
    "a plan is carried out on a live PyTorch job by a dispatch mode"
    "whole PyTorch jobs: Record" "whole PyTorch jobs: Run" "whole PyTorch jobs: Dry"
    "PyTorch jobs cannot tell that they are recorded"
    "the iterations of PyTorch jobs are found" "early updates of a PyTorch job are as advised"
    "advice for several models of a PyTorch job holds for all" "a sweep over ranks and options of a job is a row for each point"
    PROPERTIES FIXTURES_REQUIRED native
    SKIP_REGULAR_EXPRESSION "PyTorch is not installed" ENVIRONMENT "TIDEPOOL_PROGRAM=$<TARGET_FILE:tidepool>" COST 1 TIMEOUT 1800)
  add_test(NAME "reports show in a browser what they should"
    COMMAND ${Python3_EXECUTABLE} -m unittest discover -v -s ${CMAKE_SOURCE_DIR}/tests/browser)
  set_tests_properties("reports show in a browser what they should" PROPERTIES
    ENVIRONMENT "TIDEPOOL_PROGRAM=$<TARGET_FILE:tidepool>;SCREENSHOTS=${CMAKE_BINARY_DIR}/screenshots"
    SKIP_REGULAR_EXPRESSION "no Chromium is installed")
endif()
