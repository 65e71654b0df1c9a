// Tables of numbers in an HTML page: small on disk, typed arrays in the browser.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace tidepool {

struct DataColumn {
  std::string_view name;
  std::vector<std::int64_t> values;  ///< each below 2^53, up to which JavaScript has all whole numbers
};

/// Blocks of compressed bytes, each in a script element of its own that the browser does not execute. A table is stored
/// column by column, as differences between rows with the sign in the lowest bit. Each number of a column has as many
/// bytes as the largest one needs; the lowest bytes of all numbers come first. The result is compressed with zlib and
/// written in base64.
class DataBlocks {
 public:
  /// @param columns  of equal length
  /// @return  the place of the table: {"block": 3, "rows": 5, "columns": [["begin", 2], ...]}, with the name of each
  ///          column and the bytes that each of its numbers has
  nlohmann::ordered_json add_table(const std::vector<DataColumn>& columns);
  /// Adds a text, such as a JSON array of names. @return  {"block": 4}
  nlohmann::ordered_json add_text(std::string_view text);

  /// The script elements of all blocks: <script type="text/plain" id="block-0">...</script>.
  const std::string& html() const { return html_; }

 private:
  std::size_t add(std::string_view bytes);

  std::string html_;
  std::size_t count_ = 0;
};

}  // namespace tidepool
