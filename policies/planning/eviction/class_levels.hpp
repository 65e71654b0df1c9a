// Cost levels of classes that versions rely on, and the versions to notify when such a cost falls.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "traces/base/quantity.hpp"
#include "traces/ids.hpp"

namespace tidepool {

/// Versions that rely on the costs of classes (see EvictedClasses). A version notes a level for each such class: it
/// relies on the class to cost at least this much. When a class's cost falls, only the versions that noted a
/// higher level are visited. The notes of a class are kept in a heap, the highest level first. Cost: O(log notes) for
/// each note that is added or removed, amortised.
class ClassLevels {
 public:
  void start(std::size_t versions) {
    stamps_.assign(versions, 0);
    heaps_.clear();
  }
  void add_class() { heaps_.emplace_back(); }

  /// Makes all notes of the version invalid.
  void forget(VersionId v) { ++stamps_[v.index()]; }

  void note(VersionId v, std::uint32_t of_class, Nanos level) {
    Heap& heap = heaps_[of_class];
    if (heap.notes.size() >= heap.limit) tidy(heap);
    heap.notes.push_back({level, v, stamps_[v.index()]});
    std::push_heap(heap.notes.begin(), heap.notes.end(), lower);
  }

  /// Number of notes that a class keeps, some of which may be invalid.
  std::size_t notes(std::uint32_t of_class) const { return heaps_[of_class].notes.size(); }

  /// Says that the cost of a class has fallen to `cost`. Calls visit(version, difference) for each version that relied
  /// on a higher cost, and forgets the version's notes.
  template <class Visit>
  void fell(std::uint32_t of_class, Nanos cost, Visit visit) {
    std::vector<Note>& notes = heaps_[of_class].notes;
    while (!notes.empty() && notes.front().level > cost) {
      const Note note = notes.front();
      std::pop_heap(notes.begin(), notes.end(), lower);
      notes.pop_back();
      if (!counts(note)) continue;
      forget(note.version);
      visit(note.version, note.level - cost);
    }
  }

  /// Class `from` becomes part of class `into`. Calls visit(version) for each version that noted the one of the two
  /// classes that has fewer notes, and forgets all notes of this version, since it may rely on both classes.
  template <class Visit>
  void unite(std::uint32_t from, std::uint32_t into, Visit visit) {
    if (heaps_[from].notes.size() > heaps_[into].notes.size()) std::swap(heaps_[from], heaps_[into]);
    for (const Note& note : heaps_[from].notes) {
      if (!counts(note)) continue;
      forget(note.version);
      visit(note.version);
    }
    heaps_[from] = {};
  }

 private:
  struct Note {
    Nanos level;
    VersionId version;
    std::uint32_t stamp;  // the note is valid while this is the version's stamp
  };
  struct Heap {
    std::vector<Note> notes;
    std::size_t limit = 8;  // number of notes at which invalid ones are removed
  };

  static bool lower(const Note& a, const Note& b) { return a.level < b.level; }
  bool counts(const Note& note) const { return stamps_[note.version.index()] == note.stamp; }

  void tidy(Heap& heap) {
    std::erase_if(heap.notes, [&](const Note& note) { return !counts(note); });
    std::make_heap(heap.notes.begin(), heap.notes.end(), lower);
    heap.limit = std::max<std::size_t>(8, 2 * heap.notes.size());
  }

  std::vector<std::uint32_t> stamps_;  // by version
  std::vector<Heap> heaps_;            // by class
};

}  // namespace tidepool
