# Writes a C++ file with the descriptions of the machines that have a fixed name:
#   cmake -DOUT=known_machines.cpp -P embed.cmake -- FILE...
set(texts "")
set(past_separator OFF)
math(EXPR last "${CMAKE_ARGC} - 1")
foreach(index RANGE ${last})
  if(past_separator)
    file(READ "${CMAKE_ARGV${index}}" text)
    string(APPEND texts "      R\"json(${text})json\",\n")
  elseif("${CMAKE_ARGV${index}}" STREQUAL "--")
    set(past_separator ON)
  endif()
endforeach()
file(WRITE ${OUT} "#include \"simulator/engine/machine/machine_file.hpp\"

namespace tidepool {

std::span<const std::string_view> known_machine_files() {
  static constexpr std::string_view kFiles[] = {
${texts}  };
  return kFiles;
}

}  // namespace tidepool
")
