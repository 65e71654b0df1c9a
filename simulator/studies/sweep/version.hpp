// Version of a build: the release and a hash of the sources that decide results.
#pragma once

#include <string_view>

namespace tidepool {

/// The release and the first 64 bits of a hash of all C++ sources of traces/, simulator/ and policies/, as in
/// "0.1.0+3f2a9c417be0d655". Two builds whose results may differ have different versions.
std::string_view build_version();

}  // namespace tidepool
