# Writes C++ with a hash of sources: cmake -DOUT=version.cpp -DROOT=... -DVERSION=0.1.0 -P version.cmake
set(sources "")
foreach(folder traces simulator policies)
  file(GLOB_RECURSE found RELATIVE ${ROOT} ${ROOT}/${folder}/*.cpp ${ROOT}/${folder}/*.hpp)
  list(APPEND sources ${found})
endforeach()
list(SORT sources)
set(hashes "")
foreach(source ${sources})
  file(SHA256 ${ROOT}/${source} hash)
  string(APPEND hashes "${source} ${hash}\n")
endforeach()
string(SHA256 hash "${hashes}")
string(SUBSTRING ${hash} 0 16 hash)
file(CONFIGURE OUTPUT ${OUT} CONTENT "#include \"simulator/studies/sweep/result_row.hpp\"

namespace tidepool {

std::string_view build_version() { return \"@VERSION@+@hash@\"; }

}  // namespace tidepool
" @ONLY)
