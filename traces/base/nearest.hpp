// Nearest known name to a misspelt one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tidepool {

/// The only known word that begins with `word`, if this has three bytes or more. Otherwise the known word with the
/// least edit distance; "" if this is above 1 and above a third of the length of `word`, or if `word` has more than 64
/// bytes.
std::string nearest(std::string_view word, const std::vector<std::string>& known);

/// "no policy named 'gapswap', did you mean 'gap-swap'?; known: dtr, gap-swap", for an error about `what`.
std::string unknown_name(std::string_view what, std::string_view name, const std::vector<std::string>& known);

}  // namespace tidepool
