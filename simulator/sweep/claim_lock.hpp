// The lock by which sweeps into one database know of each other which are alive.
#pragma once

#include <cstdint>
#include <string>

namespace tidepool {

/// A lock on one byte of the file PATH-workers beside a database, from construction to destruction. The kernel lets go of
/// it when the process ends, however it ends, so claims of a killed sweep count for nothing at once. The last one out
/// removes the file.
class ClaimLock {
 public:
  /// @param database  a file that exists
  /// @throws std::runtime_error  "r.sqlite-workers: cannot be locked: No locks available"
  explicit ClaimLock(const std::string& database);
  ~ClaimLock();
  ClaimLock(const ClaimLock&) = delete;
  ClaimLock& operator=(const ClaimLock&) = delete;

  /// The number of the byte, drawn at random, and the name of who holds it.
  std::int64_t holder() const { return holder_; }
  /// Whether another one lives that holds this byte.
  bool is_held(std::int64_t holder) const;

 private:
  std::string path_;
  std::int64_t holder_;
  int file_ = -1;
};

}  // namespace tidepool
