// Tables of numbers inside of an HTML page: small on disk, typed arrays in the browser.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace tidepool {

struct DataColumn {
  std::string_view name;
  std::vector<std::int64_t> values;  ///< below 2^53, which is as far as a browser counts
};

/// Blocks of compressed bytes, each in a script element of its own that nothing executes. A table is kept column by
/// column: differences between rows, signs in the lowest bit, in as many bytes as the largest needs, all lowest bytes
/// first; then zlib and base64.
class DataBlocks {
 public:
  /// @param columns  of equal length
  /// @return  where to find it: {"block": 3, "rows": 5, "columns": [["begin", 2], ...]}, with the bytes of each column
  nlohmann::ordered_json add_table(const std::vector<DataColumn>& columns);
  /// A text, as in a JSON array of names. @return  {"block": 4}
  nlohmann::ordered_json add_text(std::string_view text);

  /// The script elements of all blocks: <script type="text/plain" id="block-0">...</script>.
  const std::string& html() const { return html_; }

 private:
  std::size_t add(std::string_view bytes);

  std::string html_;
  std::size_t count_ = 0;
};

}  // namespace tidepool
