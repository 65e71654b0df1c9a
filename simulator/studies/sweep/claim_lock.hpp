// Lock by which other sweeps that write to the same database see that this sweep is alive.
#pragma once

#include <cstdint>
#include <string>

namespace tidepool {

/// A lock on one byte of the file PATH-workers beside a database, from construction to destruction. The kernel releases
/// it when the process ends in any way, so the claims of a killed sweep end at once. The last holder removes the file.
class ClaimLock {
 public:
  /// @param database  a file that exists
  /// @throws std::runtime_error  "r.sqlite-workers: cannot be locked: No locks available"
  explicit ClaimLock(const std::string& database);
  ~ClaimLock();
  ClaimLock(const ClaimLock&) = delete;
  ClaimLock& operator=(const ClaimLock&) = delete;

  /// Whether the file of locks exists: other sweeps hold locks on it, or a killed one has left it.
  static bool file_exists(const std::string& database);

  /// The position of the locked byte, drawn at random. It identifies this holder in the table of claims.
  std::int64_t holder() const { return holder_; }
  /// Whether another ClaimLock, of any live process, holds the lock on this byte.
  bool is_held(std::int64_t holder) const;

 private:
  std::string path_;
  std::int64_t holder_;
  int file_ = -1;
};

}  // namespace tidepool
