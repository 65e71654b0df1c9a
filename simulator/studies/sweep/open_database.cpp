// Opening and closing databases of results: new ones, those of other programs, damaged ones, and those that cannot be
// written to.
#include <fmt/format.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <thread>

#include "simulator/studies/sweep/database.hpp"
#include "simulator/studies/sweep/schema.hpp"
#include "traces/base/error.hpp"
#include "traces/base/output.hpp"
#include "traces/base/refuse.hpp"
#include "traces/content.hpp"

namespace tidepool {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kPatience{30'000};  // with a database that another process has locked
constexpr std::string_view kMagic{"SQLite format 3\0", 16};
constexpr std::size_t kHeadBytes = 4096;  // enough to tell text from binary data

std::string insert_row() {
  std::string sql = fmt::format("INSERT OR REPLACE INTO runs (run_key, {}) VALUES (?", schema::column_names());
  for (std::size_t i = 0; i < result_columns().size(); ++i) sql += ", ?";
  return sql + ")";
}

/// The SQL that makes an empty file a database of results.
std::string make_tables() {
  return schema::create() +
         fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}", schema::kApplication, schema::kVersion);
}

/// While an object lives, a write beyond the size limit of files is an error, not the end of the program.
class SizeLimitIsError {
 public:
  SizeLimitIsError() {
    struct sigaction ignore = {};
    ignore.sa_handler = SIG_IGN;
    sigaction(SIGXFSZ, &ignore, &before_);
  }
  ~SizeLimitIsError() { sigaction(SIGXFSZ, &before_, nullptr); }
  SizeLimitIsError(const SizeLimitIsError&) = delete;
  SizeLimitIsError& operator=(const SizeLimitIsError&) = delete;

 private:
  struct sigaction before_ = {};
};

/// Makes a database under a name of its own, and gives it `path` when it is whole, so that a full disk leaves nothing
/// there. If another process has made a file of this name by then, that file stays.
void make_whole(const std::string& path) {
  const Unbroken unbroken;
  std::string made;
  std::FILE* const file = create_beside(path, made);
  if (file == nullptr) return;  // the database cannot be made either, and its message says why
  std::fclose(file);
  const SizeLimitIsError limit;
  sqlite3* handle = nullptr;
  int code = sqlite3_open_v2(made.c_str(), &handle, SQLITE_OPEN_READWRITE, nullptr);
  if (code == SQLITE_OK)
    code = sqlite3_exec(handle, ("PRAGMA journal_mode = MEMORY; BEGIN;" + make_tables() + "; COMMIT").c_str(), nullptr,
                        nullptr, nullptr);
  sqlite3_close(handle);
  if (code == SQLITE_OK && ::link(made.c_str(), path.c_str()) != 0 && errno != EEXIST)
    std::rename(made.c_str(), path.c_str());  // the file system has no links
  std::remove(made.c_str());
  if (code != SQLITE_OK) throw std::runtime_error{fmt::format("{}: {}", path, sqlite3_errstr(code))};
}

/// Whether SQLite cannot write to a file or its folder, as on a mount without write access.
bool is_fixed(const std::string& path) {
  std::error_code unknown;
  const fs::path folder = fs::absolute(path, unknown).parent_path();
  const bool writable = ::access(path.c_str(), W_OK) == 0 && ::access(folder.c_str(), W_OK) == 0;
  return !writable && fs::is_regular_file(path, unknown);
}

bool has_log(const std::string& path) {
  std::error_code unknown;
  const auto log = fs::file_size(path + "-wal", unknown);
  return !unknown && log > 0;
}

/// The URI of a database that does not change.
std::string fixed_uri(const std::string& path) {
  std::string uri = "file:";
  for (const char c : path) uri += c == '%' || c == '?' || c == '#' ? fmt::format("%{:02x}", c) : std::string{c};
  return uri + "?immutable=1";
}

void without_log(sqlite3* handle) {
  sqlite3_busy_timeout(handle, 0);
  sqlite3_exec(handle, "PRAGMA journal_mode = DELETE", nullptr, nullptr, nullptr);
}

}  // namespace

void Database::Close::operator()(sqlite3* handle) const {
  if (leaves_one_file) without_log(handle);
  sqlite3_close(handle);
}
void Database::Close::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

/// A database and its log, copied to where SQLite can read them together: beside the log, it needs an index in a file
/// that it can write to, unless the writer has left it.
class Database::Copy {
 public:
  explicit Copy(const std::string& path) {
    std::string name = (fs::temp_directory_path() / "tidepool-results-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) refuse("{}: no folder for a copy of {} can be made here", name, path);
    folder_ = name;
    std::error_code failed;
    for (const char* const part : {"", "-wal"})
      if (!failed) fs::copy_file(path + part, this->path() + part, failed);
    if (!failed) return;
    std::error_code none;
    fs::remove_all(folder_, none);
    throw std::runtime_error{fmt::format("{}: no copy can be made in {}: {}", path, name, failed.message())};
  }
  ~Copy() {
    std::error_code none;
    fs::remove_all(folder_, none);
  }
  Copy(const Copy&) = delete;
  Copy& operator=(const Copy&) = delete;

  std::string path() const { return (folder_ / "results.sqlite").string(); }

 private:
  fs::path folder_;
};

Database::~Database() = default;

Database::Database(const std::string& path, Open open) : path_{path} {
  if (path.empty())  // SQLite would keep the results in a file that it deletes at the end
    throw InputError{"the name of the database is empty; expected one, as in results.sqlite"};
  if (path == "-")
    throw InputError{"'-' is no database, nor the standard output; expected a name (./- for a database of this name)"};
  std::string name = path;
  int flags = SQLITE_OPEN_READWRITE;
  if (open == Open::kMayCreate) {
    flags |= SQLITE_OPEN_CREATE;
    std::error_code unknown;
    if (path != ":memory:" && fs::symlink_status(path, unknown).type() == fs::file_type::not_found) make_whole(path);
  } else if (is_fixed(path)) {
    if (!has_log(path)) {
      name = fixed_uri(path);
      flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_URI;
    } else if (::access((path + "-shm").c_str(), R_OK) != 0) {
      copy_ = std::make_unique<Copy>(path);
      name = copy_->path();
    }
  }
  sqlite3* handle = nullptr;
  const int code = sqlite3_open_v2(name.c_str(), &handle, flags, nullptr);
  handle_.reset(handle);
  if (code == SQLITE_CANTOPEN && open == Open::kExisting && !fs::exists(path))
    throw InputError{fmt::format("{}: no such file; expected a database that sweep wrote", path)};
  if (code == SQLITE_CANTOPEN && fs::is_directory(path))
    throw InputError{fmt::format("{}: is a directory; expected a database that sweep wrote", path)};
  if (code != SQLITE_OK) throw InputError{fmt::format("{}: {}", path, sqlite3_errstr(code))};
  sqlite3_busy_timeout(handle, static_cast<int>(kPatience.count()));
  try {
    check_or_create(open);
    insert_ = prepare(insert_row());
    find_ = prepare(fmt::format("SELECT {} FROM runs WHERE run_key = ?", schema::column_names()));
    outcome_ = prepare("SELECT outcome FROM runs WHERE run_key = ?");
  } catch (const std::runtime_error&) {
    if (sqlite3_errcode(handle) == SQLITE_CORRUPT) check();
    throw;
  }
}

void Database::leave_one_file() const { without_log(handle_.get()); }

bool Database::is_ours(const std::string& path) {
  if (std::error_code error; !fs::is_regular_file(path, error)) return false;
  std::ifstream file{path, std::ios::binary};
  std::string head(100, '\0');
  if (!file.read(head.data(), static_cast<std::streamsize>(head.size())) || !head.starts_with(kMagic)) return false;
  std::uint32_t application = 0;  // big-endian
  for (std::size_t i = 68; i < 72; ++i) application = application << 8 | static_cast<unsigned char>(head[i]);
  return application == schema::kApplication;
}

void Database::check_or_create(Open open) {
  const auto foreign = [&] {
    std::string head(kHeadBytes, '\0');
    std::ifstream file{path_, std::ios::binary};
    file.read(head.data(), static_cast<std::streamsize>(head.size()));
    head.resize(static_cast<std::size_t>(file.gcount()));
    const std::string_view what = head.starts_with(kMagic) ? "" : not_text(head);
    return InputError{fmt::format(
        "{}: {}; expected {}{} that sweep wrote", path_, what.empty() ? "not a database of sweep results" : what,
        open == Open::kExisting ? "" : "a new file or ", what.empty() ? "one" : "a database")};
  };
  try {
    execute("BEGIN");  // another process may create the tables between these reads
    const std::int64_t application = number("PRAGMA application_id");
    const std::int64_t version = number("PRAGMA user_version");
    if (application != schema::kApplication &&
        (application != 0 || open == Open::kExisting || number("SELECT count(*) FROM sqlite_master") != 0))
      throw foreign();
    if (application == schema::kApplication && version != schema::kVersion)
      throw InputError{fmt::format("{}: schema version {}; this tidepool reads and writes version {}", path_, version,
                                   schema::kVersion)};
    execute("COMMIT");
  } catch (const std::runtime_error&) {
    if (sqlite3_errcode(handle_.get()) == SQLITE_NOTADB) throw foreign();
    throw;
  }
  if (open == Open::kExisting) return;
  handle_.get_deleter().leaves_one_file = true;
  if (number("PRAGMA application_id") == 0) {  // an empty file
    execute("BEGIN IMMEDIATE");
    if (number("PRAGMA application_id") == 0) execute(make_tables());  // no other process has made them meanwhile
    execute("COMMIT");
  }
  use_write_ahead_log();
  execute("PRAGMA synchronous = NORMAL");
}

void Database::use_write_ahead_log() {
  const auto last = std::chrono::steady_clock::now() + kPatience;
  // For this statement alone, SQLite does not wait while others use the database.
  while (sqlite3_exec(handle_.get(), "PRAGMA journal_mode = WAL", nullptr, nullptr, nullptr) == SQLITE_BUSY &&
         std::chrono::steady_clock::now() < last)
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  execute("PRAGMA journal_mode = WAL");
}

void Database::check() const {
  std::string found;
  const auto damaged = [&] {
    return InputError{fmt::format("{}: damaged: {}; expected a whole database of sweep results", path_, found)};
  };
  try {
    const Statement statement = prepare("PRAGMA quick_check(1)");
    if (step(statement.get())) found = text_of(statement.get(), 0);
  } catch (const std::runtime_error&) {
    found = sqlite3_errmsg(handle_.get());
    throw damaged();
  }
  if (found != "ok") throw damaged();
}

}  // namespace tidepool
