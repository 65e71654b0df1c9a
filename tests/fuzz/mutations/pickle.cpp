#include <algorithm>
#include <vector>

#include "tests/fuzz/mutations/mutations.hpp"

namespace tidepool::fuzz {
namespace {

/// The size of an opcode's argument if it is fixed; else the size of the length in front of the argument; both 0 for an
/// opcode without an argument, or whose argument is not known here.
struct Form {
  std::size_t fixed = 0, length = 0;
};

Form form_of(char opcode) {
  switch (static_cast<unsigned char>(opcode)) {
    case 'K':
    case 'h':
    case 'q':
    case 0x80:  // BININT1, BINGET, BINPUT, PROTO
      return {1, 0};
    case 'M':  // BININT2
      return {2, 0};
    case 'J':
    case 'j':
    case 'r':  // BININT, LONG_BINGET, LONG_BINPUT
      return {4, 0};
    case 'G':
    case 0x95:  // BINFLOAT, FRAME
      return {8, 0};
    case 'U':
    case 'C':
    case 0x8c:
    case 0x8a:  // SHORT_BINSTRING, SHORT_BINBYTES, SHORT_BINUNICODE, LONG1
      return {0, 1};
    case 'T':
    case 'B':
    case 'X':
    case 0x8b:  // BINSTRING, BINBYTES, BINUNICODE, LONG4
      return {0, 4};
    case 0x8d:
    case 0x8e:  // BINUNICODE8, BINBYTES8
      return {0, 8};
    default:
      return {};
  }
}

/// The opcodes with their arguments. An opcode whose argument is cut off is the last one.
std::vector<std::string> opcodes(std::string_view bytes) {
  std::vector<std::string> all;
  while (!bytes.empty()) {
    const Form form = form_of(bytes[0]);
    std::size_t size = 1 + form.fixed + form.length, more = 0;
    for (std::size_t i = 0; i < form.length && 1 + i < bytes.size(); ++i)
      more |= std::size_t{static_cast<unsigned char>(bytes[1 + i])} << 8 * i;
    size = more > bytes.size() ? bytes.size() : std::min(size + more, bytes.size());
    all.emplace_back(bytes.substr(0, size));
    bytes.remove_prefix(size);
  }
  return all;
}

/// Another argument of the same size: all ones, all zeros, or one byte that differs.
void change_argument(std::string& opcode, Random& random) {
  const std::size_t first = 1 + form_of(opcode[0]).length;
  if (first >= opcode.size()) return;
  if (const auto how = random() % 4; how < 2)
    std::fill(opcode.begin() + static_cast<std::ptrdiff_t>(first), opcode.end(), how == 0 ? '\xff' : '\0');
  else
    opcode[first + random() % (opcode.size() - first)] = static_cast<char>(random());
}

}  // namespace

std::string mutate_pickle(std::string_view bytes, Random& random) {
  std::vector<std::string> all = opcodes(bytes);
  if (all.empty()) return "";
  const std::size_t at = random() % all.size();
  switch (random() % 5) {
    case 0:
      all.erase(all.begin() + static_cast<std::ptrdiff_t>(at));
      break;
    case 1:
      all.insert(all.begin() + static_cast<std::ptrdiff_t>(random() % all.size()), std::string{all[at]});
      break;
    case 2:
      std::swap(all[at], all[random() % all.size()]);
      break;
    default:
      change_argument(all[at], random);
  }
  std::string joined;
  for (const std::string& opcode : all) joined += opcode;
  return joined;
}

}  // namespace tidepool::fuzz
