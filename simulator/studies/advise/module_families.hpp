// Modules that are changed together: layers of one kind, or all modules of one depth.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace tidepool {

/// Families as indices into `paths`: modules whose paths differ in numbers only, and modules of equal depth. No module
/// lies in another one of its family.
std::vector<std::vector<std::size_t>> module_families(const std::vector<std::string>& paths);

}  // namespace tidepool
