// The bytes that a reader gets: a whole file, decompressed if it was compressed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace tidepool {

/// A whole input in memory, with kPadding zero bytes behind it (vectorised parsers read past the end).
class Input {
 public:
  static constexpr std::size_t kPadding = 64;

  /// Takes a copy of `bytes`; `path` is used in messages only.
  Input(std::string path, std::string_view bytes);

  /// As the user gave it, for the front of messages.
  const std::string& path() const { return path_; }
  std::string_view bytes() const { return {data_.get(), size_}; }

 private:
  friend Input read_input(const std::string& path);
  Input(std::string path, std::unique_ptr<char[]> data, std::size_t size)
      : path_{std::move(path)}, data_{std::move(data)}, size_{size} {}

  std::string path_;
  std::unique_ptr<char[]> data_;
  std::size_t size_ = 0;
};

/// Reads a file whole; one that starts like gzip, xz or zstd is decompressed (several members in a row are joined).
/// @throws InputError  "x.gz: cannot be opened: No such file or directory",
///                     "x.gz: byte 812: gzip data ends early or is damaged",
///                     "x.gz: grows to more than 16 GiB when decompressed"
Input read_input(const std::string& path);

}  // namespace tidepool
