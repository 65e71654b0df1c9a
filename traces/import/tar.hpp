// Files of a tar archive (ustar, pax or GNU tar), in the order of the archive.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "traces/base/input.hpp"

namespace tidepool {

struct TarFile {
  std::string name;
  std::string_view bytes;  ///< a part of the archive's bytes
};

/// Whether a file that begins with `head`, at least 512 bytes, is a tar archive.
bool is_tar(std::string_view head);

/// The regular files. Folders, links and headers of extensions are left out.
/// @param archive  decompressed; must outlive the result
/// @throws InputError  "x.tar:byte 512: a header with a wrong checksum; expected a complete tar archive"
/// @throws InputError  "x.tar:byte 512: a damaged pax header; expected a complete tar archive"
std::vector<TarFile> tar_files(const Input& archive);

}  // namespace tidepool
