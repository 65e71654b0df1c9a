# Writes C++ with the bytes of files: cmake -DOUT=assets.cpp -P embed.cmake -- FILE...
set(files "")
set(past_separator OFF)
foreach(index RANGE ${CMAKE_ARGC})
  if(past_separator AND CMAKE_ARGV${index})
    list(APPEND files ${CMAKE_ARGV${index}})
  elseif("${CMAKE_ARGV${index}}" STREQUAL "--")
    set(past_separator ON)
  endif()
endforeach()
list(SORT files)
set(scripts "")
set(cases "")
set(arrays "")
function(add_array name hex)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(REGEX REPLACE "(................................................................................)" "\\1\n" bytes "${bytes}")
  set(arrays "${arrays}constexpr unsigned char ${name}[] = {\n${bytes}0};\n" PARENT_SCOPE)
endfunction()
set(number 0)
foreach(file ${files})
  file(READ ${file} hex HEX)
  get_filename_component(name ${file} NAME)
  if(name MATCHES "\\.js$")
    string(APPEND scripts "${hex}")
  else()
    add_array(kFile${number} "${hex}")
    string(APPEND cases "  if (name == \"${name}\") return text(kFile${number}, sizeof kFile${number} - 1);\n")
    math(EXPR number "${number} + 1")
  endif()
endforeach()
add_array(kScripts "${scripts}")
file(WRITE ${OUT} "#include \"simulator/studies/report/page.hpp\"

#include <stdexcept>
#include <string>

namespace tidepool {
namespace {

${arrays}
std::string_view text(const unsigned char* bytes, std::size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

}  // namespace

std::string_view report_asset(std::string_view name) {
${cases}  throw std::logic_error{\"no file \" + std::string{name} + \" is built in\"};
}

std::string_view report_scripts() { return text(kScripts, sizeof kScripts - 1); }

}  // namespace tidepool
")
