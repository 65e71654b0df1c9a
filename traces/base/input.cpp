#include "traces/base/input.hpp"

#include <fmt/format.h>
#include <lzma.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <new>
#include <utility>

#include "traces/base/error.hpp"
#include "traces/base/output.hpp"
#include "traces/base/quantity.hpp"
#include "traces/base/two_at_once.hpp"

namespace tidepool {
namespace {

/// A file that grows more than this, beyond some size, holds nothing that can be recorded: traces grow 10 to 100 times.
constexpr std::size_t kMostExpansion = 500;
constexpr Bytes kAlwaysDecompressed{std::int64_t{256} << 20};
/// Bytes from which a file is read by two threads.
constexpr std::size_t kLarge = std::size_t{1} << 26;

/// A buffer for bytes whose number is not known beforehand. It grows only as data arrives, and never beyond a limit.
class Growing {
 public:
  /// @param check  called for the first kSniffBytes before more are decompressed; may be empty
  Growing(std::string path, std::size_t expected, std::size_t limit, HeadCheck check)
      : path_{std::move(path)}, limit_{limit}, capacity_{std::min(expected, limit)}, check_{std::move(check)} {
    data_ = std::make_unique_for_overwrite<char[]>(capacity_ + Input::kPadding);
  }

  /// The position of the next bytes, with room for at least one.
  char* end() {
    if (size_ == capacity_) grow();
    return data_.get() + size_;
  }
  std::size_t size() const { return size_; }
  std::size_t room() const {
    return check_ && size_ < kSniffBytes ? std::min(capacity_, kSniffBytes) - size_ : capacity_ - size_;
  }
  void add(std::size_t bytes) {
    size_ += bytes;
    if (size_ >= kSniffBytes) check_head();
  }

  Input finish() {
    check_head();
    std::memset(data_.get() + size_, 0, Input::kPadding);
    return Input{std::move(path_), std::move(data_), size_};
  }

 private:
  void grow() {
    if (capacity_ == limit_)
      throw InputError{fmt::format("{}: has more than {} when decompressed; expected no more (--max-input raises it)",
                                   path_, to_text(Bytes{static_cast<std::int64_t>(limit_)}))};
    const std::size_t more = std::min(limit_, std::max<std::size_t>(2 * capacity_, std::size_t{1} << 16));
    auto moved = std::make_unique_for_overwrite<char[]>(more + Input::kPadding);
    std::memcpy(moved.get(), data_.get(), size_);
    data_ = std::move(moved);
    capacity_ = more;
  }

  void check_head() {
    if (const HeadCheck check = std::exchange(check_, {}))
      check(Input{path_, {data_.get(), std::min(size_, kSniffBytes)}});
  }

  std::string path_;
  std::unique_ptr<char[]> data_;
  std::size_t limit_;
  std::size_t capacity_;
  std::size_t size_ = 0;
  HeadCheck check_;  ///< empty once it has been called
};

/// The most bytes that decompression may give: those of the environment's TIDEPOOL_MAX_INPUT, else kMostDecompressed,
/// and no more than kMostExpansion times the compressed bytes, beyond kAlwaysDecompressed.
/// @throws InputError  "TIDEPOOL_MAX_INPUT: 'much' is not a size; ..."
std::size_t most_decompressed(std::size_t compressed) {
  const char* given = std::getenv(kMaxInputVariable);
  if (!given)
    return std::min(static_cast<std::size_t>(kMostDecompressed.count()),
                    std::max(static_cast<std::size_t>(kAlwaysDecompressed.count()), kMostExpansion * compressed));
  try {
    return static_cast<std::size_t>(parse_bytes(given).count());
  } catch (const InputError& error) {
    throw error.at(kMaxInputVariable);
  }
}

[[noreturn]] void damaged(const Input& input, std::size_t byte, const char* form, const char* why) {
  throw InputError{fmt::format("{}:byte {}: {} data is damaged ({})", input.path(), byte, form, why)};
}

[[noreturn]] void cut_off(const Input& input, const char* form) {
  throw InputError{fmt::format("{}:byte {}: {} data ends early; expected a complete file", input.path(),
                               input.bytes().size(), form)};
}

/// A size for zlib, which counts in 32 bits.
unsigned piece(std::size_t bytes) { return static_cast<unsigned>(std::min<std::size_t>(bytes, 1U << 30)); }

void gunzip(const Input& input, Growing& out) {
  const std::string_view in = input.bytes();
  std::size_t taken = 0;
  for (; taken < in.size(); taken = std::min(in.find_first_not_of('\0', taken), in.size())) {
    z_stream stream{};
    if (inflateInit2(&stream, 16 + MAX_WBITS) != Z_OK) throw std::bad_alloc{};
    const std::unique_ptr<z_stream, decltype(&inflateEnd)> end{&stream, inflateEnd};
    for (int status = Z_OK; status != Z_STREAM_END;) {
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data() + taken));
      const unsigned given = stream.avail_in = piece(in.size() - taken);
      stream.next_out = reinterpret_cast<Bytef*>(out.end());
      const unsigned room = stream.avail_out = piece(out.room());
      status = inflate(&stream, Z_NO_FLUSH);
      taken += given - stream.avail_in;
      out.add(room - stream.avail_out);
      if (status == Z_BUF_ERROR || (status == Z_OK && given == 0)) cut_off(input, "gzip");
      if (status != Z_OK && status != Z_STREAM_END)
        damaged(input, taken, "gzip", stream.msg ? stream.msg : "not deflate");
    }
  }
}

void unxz(const Input& input, Growing& out) {
  const std::string_view in = input.bytes();
  lzma_stream stream = LZMA_STREAM_INIT;
  if (lzma_stream_decoder(&stream, std::uint64_t{1} << 30, LZMA_CONCATENATED) != LZMA_OK) throw std::bad_alloc{};
  const std::unique_ptr<lzma_stream, decltype(&lzma_end)> end{&stream, lzma_end};
  stream.next_in = reinterpret_cast<const std::uint8_t*>(in.data());
  stream.avail_in = in.size();
  for (lzma_ret status = LZMA_OK; status != LZMA_STREAM_END;) {
    stream.next_out = reinterpret_cast<std::uint8_t*>(out.end());
    const std::size_t room = stream.avail_out = out.room();
    status = lzma_code(&stream, LZMA_FINISH);
    out.add(room - stream.avail_out);
    if (status == LZMA_BUF_ERROR) cut_off(input, "xz");
    if (status == LZMA_MEMLIMIT_ERROR)
      damaged(input, in.size() - stream.avail_in, "xz", "needs more than 1 GiB to decompress");
    if (status != LZMA_OK && status != LZMA_STREAM_END)
      damaged(input, in.size() - stream.avail_in, "xz", "corrupt block");
  }
}

void unzstd(const Input& input, Growing& out) {
  const std::string_view in = input.bytes();
  const std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context{ZSTD_createDCtx(), ZSTD_freeDCtx};
  if (!context) throw std::bad_alloc{};
  ZSTD_inBuffer from{in.data(), in.size(), 0};
  for (std::size_t left = 1; left != 0 || from.pos < from.size;) {
    ZSTD_outBuffer to{out.end(), out.room(), 0};
    const std::size_t before = from.pos;
    left = ZSTD_decompressStream(context.get(), &to, &from);
    out.add(to.pos);
    if (ZSTD_isError(left)) damaged(input, from.pos, "zstd", ZSTD_getErrorName(left));
    if (left != 0 && from.pos == from.size && from.pos == before && to.pos == 0) cut_off(input, "zstd");
  }
}

[[noreturn]] void fail(const std::string& path, const char* what) {
  if (errno == EISDIR) throw InputError{fmt::format("{}: is a directory; expected a file", path)};
  throw InputError{fmt::format("{}: cannot be {}: {}", path, what, std::strerror(errno))};
}

/// Whether a path is a device, pipe or link, which is written to and not replaced by a new file.
bool written_in_place(const std::string& path) {
  std::error_code unknown;
  const auto type = std::filesystem::symlink_status(path, unknown).type();
  return type != std::filesystem::file_type::regular && type != std::filesystem::file_type::not_found;
}

using File = std::unique_ptr<std::FILE, decltype(&std::fclose)>;

/// Reads the first bytes of a large file by two threads, as the time goes into the pages that they are copied to.
/// @return  the number of bytes, which is smaller than `size` at the end of the file and after a failure
std::size_t read_front(int file, char* to, std::size_t size) {
  const auto read = [&](std::size_t from, std::size_t end) {
    std::size_t at = from;
    while (at < end) {
      const ssize_t got = pread(file, to + at, end - at, static_cast<off_t>(at));
      if (got <= 0) break;
      at += static_cast<std::size_t>(got);
    }
    return at;
  };
  std::size_t first = 0, second = 0;
  two_at_once([&] { first = read(0, size / 2); }, [&] { second = read(size / 2, size); });
  return first < size / 2 ? first : second;
}

}  // namespace

Input::Input(std::string path, std::string_view bytes)
    : path_{std::move(path)},
      data_{std::make_unique_for_overwrite<char[]>(bytes.size() + kPadding)},
      size_{bytes.size()} {
  std::copy(bytes.begin(), bytes.end(), data_.get());
  std::memset(data_.get() + size_, 0, kPadding);
  leave_out_mark();
}

Input::Input(std::string path, std::unique_ptr<char[]> data, std::size_t size)
    : path_{std::move(path)}, data_{std::move(data)}, size_{size} {
  leave_out_mark();
}

void Input::leave_out_mark() {
  constexpr std::string_view mark = "\xef\xbb\xbf";
  if (!bytes().starts_with(mark)) return;
  std::memmove(data_.get(), data_.get() + mark.size(), size_ - mark.size() + kPadding);
  size_ -= mark.size();
}

Input decompressed(Input input, const HeadCheck& check) {
  using namespace std::string_view_literals;
  const std::string_view in = input.bytes();
  const auto unpack = in.starts_with("\x1f\x8b"sv)           ? gunzip
                      : in.starts_with("\xfd\x37zXZ\0"sv)    ? unxz
                      : in.starts_with("\x28\xb5\x2f\xfd"sv) ? unzstd
                                                             : nullptr;
  if (!unpack) {
    if (check) check(Input{input.path(), in.substr(0, kSniffBytes)});
    return input;
  }
  Growing out{input.path(), 8 * in.size(), most_decompressed(in.size()), check};
  unpack(input, out);
  return out.finish();
}

Input read_input(const std::string& path, const HeadCheck& check) try {
  const File file{std::fopen(path.c_str(), "rb"), &std::fclose};
  if (!file) fail(path, "opened");
  std::size_t expected = 0;
  if (std::fseek(file.get(), 0, SEEK_END) == 0) {
    const long end = std::ftell(file.get());
    expected = end > 0 && end < (1L << 36) ? static_cast<std::size_t>(end) : 0;
    std::rewind(file.get());
  }
  Growing bytes{path, expected + 1, ~std::size_t{0} >> 1, {}};
  if (expected >= kLarge) {
    bytes.add(read_front(fileno(file.get()), bytes.end(), expected));
    std::fseek(file.get(), static_cast<long>(bytes.size()), SEEK_SET);
  }
  for (;;) {
    char* end = bytes.end();
    const std::size_t got = std::fread(end, 1, bytes.room(), file.get());
    bytes.add(got);
    if (got == 0) break;
  }
  if (std::ferror(file.get())) fail(path, "read");
  return decompressed(bytes.finish(), check);
} catch (const std::bad_alloc&) {
  throw InputError{fmt::format("{}: takes more memory than there is; expected a smaller file", path)};
}

void write_file(const std::string& path, std::string_view bytes) {
  if (written_in_place(path)) {
    std::FILE* const file = std::fopen(path.c_str(), "wb");
    if (file == nullptr) fail(path, "written");
    write_and_close(file, bytes, path, "");
    return;
  }
  const Unbroken unbroken;
  const std::string name = write_beside(path, bytes);
  if (std::rename(name.c_str(), path.c_str()) != 0) fail_unfinished(path, name);
}

}  // namespace tidepool
