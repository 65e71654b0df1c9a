// Modules that are changed together: layers of one kind, or all of one depth.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace tidepool {

/// Modules whose paths differ in numbers only, and those of equal depth, as indices into `paths`. None lies in another
/// of its family.
std::vector<std::vector<std::size_t>> module_families(const std::vector<std::string>& paths);

}  // namespace tidepool
