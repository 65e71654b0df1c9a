#include "simulator/studies/report/data_blocks.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <bit>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace tidepool {
namespace {

using Json = nlohmann::ordered_json;

std::string base64(std::string_view bytes) {
  static constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t given = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t bits = 0;
    for (std::size_t j = 0; j < 3; ++j) bits = bits << 8 | (j < given ? static_cast<unsigned char>(bytes[i + j]) : 0u);
    for (std::size_t j = 0; j < 4; ++j) text += j <= given ? kDigits[bits >> (18 - 6 * j) & 63] : '=';
  }
  return text;
}

std::string deflated(std::string_view bytes) {
  uLongf size = compressBound(bytes.size());
  std::string result(size, '\0');
  if (compress2(reinterpret_cast<Bytef*>(result.data()), &size, reinterpret_cast<const Bytef*>(bytes.data()),
                bytes.size(), 6) != Z_OK)
    throw std::runtime_error{"a report's data could not be compressed"};
  result.resize(size);
  return result;
}

/// Appends one column. @return  number of bytes of each of its numbers
std::size_t append(std::string& raw, const std::vector<std::int64_t>& values) {
  std::vector<std::uint64_t> coded;
  coded.reserve(values.size());
  std::uint64_t before = 0, all = 0;
  for (const std::int64_t value : values) {
    const std::uint64_t difference = static_cast<std::uint64_t>(value) - before;
    before = static_cast<std::uint64_t>(value);
    coded.push_back(difference << 1 ^ (0 - (difference >> 63)));
    all |= coded.back();
  }
  const auto width = static_cast<std::size_t>(std::bit_width(all) + 7) / 8;
  std::size_t at = raw.size();
  raw.resize(at + width * coded.size());
  for (std::size_t plane = 0; plane < width; ++plane)
    for (const std::uint64_t number : coded) raw[at++] = static_cast<char>(number >> (8 * plane) & 0xff);
  return width;
}

}  // namespace

std::size_t DataBlocks::add(std::string_view bytes) {
  html_ += fmt::format("<script type=\"text/plain\" id=\"block-{}\">{}</script>\n", count_, base64(deflated(bytes)));
  return count_++;
}

Json DataBlocks::add_table(const std::vector<DataColumn>& columns) {
  std::string raw;
  Json named = Json::array();
  for (const DataColumn& column : columns) named.push_back({column.name, append(raw, column.values)});
  const std::size_t rows = columns.empty() ? 0 : columns.front().values.size();
  return {{"block", add(raw)}, {"rows", rows}, {"columns", std::move(named)}};
}

Json DataBlocks::add_text(std::string_view text) { return {{"block", add(text)}}; }

}  // namespace tidepool
