// The bytes that a reader gets: a whole file, decompressed if it was compressed.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace tidepool {

/// Bytes at the front of an input from which its form is recognised.
inline constexpr std::size_t kSniffBytes = 4096;

/// A whole input in memory, with kPadding zero bytes behind it (vectorised parsers read past the end).
class Input {
 public:
  static constexpr std::size_t kPadding = 64;

  /// Takes a copy of `bytes`; `path` is used in messages only.
  Input(std::string path, std::string_view bytes);
  /// Takes over `data`, which has `size` bytes and kPadding zero bytes behind them.
  Input(std::string path, std::unique_ptr<char[]> data, std::size_t size);

  /// As the user gave it, for the front of messages.
  const std::string& path() const { return path_; }
  std::string_view bytes() const { return {data_.get(), size_}; }

 private:
  std::string path_;
  std::unique_ptr<char[]> data_;
  std::size_t size_ = 0;
};

/// Reads a file whole; one that starts like gzip, xz or zstd is decompressed (several members in a row are joined).
/// @throws InputError  "x.gz: cannot be opened: No such file or directory"
/// @throws InputError  "x.gz:byte 812: gzip data ends early; expected a complete file"
/// @throws InputError  "x.gz:byte 812: gzip data is damaged (incorrect data check)"
/// @throws InputError  "x.gz: grows beyond 64.01 MiB when decompressed; expected at most 1000 times its size"
Input read_input(const std::string& path);

/// The same for bytes at hand, for tests and fuzzing.
Input decompressed(Input input);

/// Writes a file as a whole or not at all: to a temporary name beside it, then renamed. What is a link, a pipe or a
/// device (/dev/stdout) stays one and is written to.
/// @throws InputError  "x.tide: cannot be written: No space left on device"
void write_file(const std::string& path, std::string_view bytes);

}  // namespace tidepool
