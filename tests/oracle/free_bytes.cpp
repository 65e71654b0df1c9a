#include "tests/oracle/free_bytes.hpp"

#include <algorithm>

namespace tidepool::optimum {

Bytes FreeBytes::until(Nanos time, Bytes free) const {
  for (auto piece = pieces_.rbegin(); piece != pieces_.rend() && piece->from > time; ++piece) free -= piece->size;
  return free;
}

void FreeBytes::release(Bytes size, Nanos from) {
  if (size == Bytes{}) return;
  const auto at = std::lower_bound(pieces_.begin(), pieces_.end(), from,
                                   [](const Piece& piece, Nanos time) { return piece.from < time; });
  if (at != pieces_.end() && at->from == from)
    at->size += size;
  else
    pieces_.insert(at, {from, size});
}

Nanos FreeBytes::take(Bytes leaves, Bytes size, Bytes free, Nanos long_ago) {
  const Bytes end = leaves + size;  // in the order of time, bytes [leaves, end) are taken
  Nanos last = long_ago;
  Bytes at = free;
  for (const Piece& piece : pieces_) at -= piece.size;
  for (Piece& piece : pieces_) {
    const Bytes begin = at;
    at += piece.size;
    const Bytes taken = std::min(at, end) - std::max(begin, leaves);
    if (taken <= Bytes{}) continue;
    piece.size -= taken;
    last = piece.from;
  }
  std::erase_if(pieces_, [](const Piece& piece) { return piece.size == Bytes{}; });
  return last;
}

void FreeBytes::shift(Nanos by) {
  for (Piece& piece : pieces_) piece.from -= by;
}

bool never_later(std::span<const std::int64_t> first, std::span<const std::int64_t> second) {
  std::size_t i = first.size(), j = second.size();
  std::int64_t here = 0, there = 0;  // bytes that are left of the pieces at i and at j
  for (;;) {
    if (here == 0) {
      if (i == 0) return true;
      here = first[i - 1], i -= 2;
    }
    if (there == 0) {
      if (j == 0) return false;
      there = second[j - 1], j -= 2;
    }
    if (first[i] > second[j]) return false;
    const std::int64_t both = std::min(here, there);
    here -= both, there -= both;
  }
}

}  // namespace tidepool::optimum
