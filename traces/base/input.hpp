// The bytes that a reader gets: a whole file, decompressed if it was compressed.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "traces/base/quantity.hpp"

namespace tidepool {

/// Number of bytes at the front of an input from which its form is recognised.
inline constexpr std::size_t kSniffBytes = 4096;

/// The most bytes that a compressed file may have when decompressed, unless kMaxInputVariable in the environment (which
/// --max-input sets) gives another size.
inline constexpr Bytes kMostDecompressed = 4_GiB;
inline constexpr char kMaxInputVariable[] = "TIDEPOOL_MAX_INPUT";

/// A whole input in memory, with kPadding zero bytes behind it (vectorised parsers read past the end). A byte order
/// mark at the front of a text in UTF-8 is left out.
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
  void leave_out_mark();

  std::string path_;
  std::unique_ptr<char[]> data_;
  std::size_t size_ = 0;
};

/// Looks at the first bytes of an input (at most kSniffBytes) and throws InputError if the rest is not worth reading.
using HeadCheck = std::function<void(const Input& head)>;

/// Reads a whole file. One that starts like gzip, xz or zstd is decompressed; several members in a row are joined.
/// Zero bytes behind a member of gzip are ignored: tapes and block devices pad files with them.
/// @param check  called with the first bytes of the result before the rest is decompressed
/// @throws InputError  "x.gz: cannot be opened: No such file or directory"
/// @throws InputError  "x.gz:byte 812: gzip data ends early; expected a complete file"
/// @throws InputError  "x.gz:byte 812: gzip data is damaged (incorrect data check)"
/// @throws InputError  "x.gz: has more than 4 GiB when decompressed; expected no more (--max-input raises it)"
/// @throws InputError  "x.json: takes more memory than there is; expected a smaller file"
Input read_input(const std::string& path, const HeadCheck& check = {});

/// The same for bytes at hand, for tests and fuzzing.
Input decompressed(Input input, const HeadCheck& check = {});

/// Writes a file as a whole or not at all: to a temporary name beside it, then renamed. A link, a pipe or a device
/// (/dev/stdout) is not replaced but written to.
/// @throws InputError  if it cannot be opened; std::runtime_error  "x.tide: cannot be written: No space left on device"
void write_file(const std::string& path, std::string_view bytes);

}  // namespace tidepool
