// SmartPool's run-time memory pool, as its authors published it.
#pragma once

#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "policies/pool/smartpool/smartpool_plan.hpp"
#include "simulator/pool.hpp"

namespace tidepool {

/// What a run of SmartPool came to, as its authors count it: over all events up to two iterations after the pool began
/// to serve. "Raw" blocks are those that cudaMalloc serves.
struct SmartPoolReport {
  SmartPoolPeriod period;   ///< length 0: no iteration was found, all blocks are raw
  Bytes pool;               ///< its height
  Bytes load;               ///< most bytes live
  Bytes usage;              ///< the larger of the most raw bytes and of pool + raw bytes when most is live in the pool
  std::int64_t hits = 0;    ///< mallocs served by the pool, in the whole run
  std::int64_t misses = 0;  ///< mallocs after the switch that went to cudaMalloc, in the whole run
};

/// SmartPool (Zhang, Yeung, Shu, He, Wang, "Efficient Memory Management for GPU-based Deep Learning Systems", arXiv
/// 1903.06631, section 3; code: github.com/junzhezhang/onlineColoring and memInfo). Until it has found an iteration it
/// gives every block a cudaMalloc of its own and notes the string of mallocs and frees. Whenever the
/// number of events is a multiple of 300 it may look for a repetition: at 300, and then at twice as many after every
/// search. From the next beginning of an iteration on it serves from one pool: event (number - location) % length of
/// the iteration names the slot, which is taken if the size is the planned one and a copy of the slot is free; all else
/// is a cudaMalloc. What was cudaMalloced stays there until it is freed.
///
/// As published, one event more or less makes every later look-up wrong: sizes that differ by chance only decide then.
/// Four things differ from the code, which would crash or hand out memory that is in use: where the slot is free but a
/// block of another slot still lies there, and where both copies are taken, the request is a miss; where the device
/// refuses the pool, SmartPool goes on without it; an iteration that would begin with a free begins with the next
/// malloc; and the string is complete (the code reads behind the end of its blocks, sorted by address, and so leaves
/// the last one out if it is not freed, which moves the beginnings that it prints for its own logs to one event
/// before).
class SmartPool final : public Pool {
 public:
  explicit SmartPool(SmartPoolFit fit) : fit_{fit} {}

  void start(const Trace& trace, Bytes capacity, Device& device) override;
  std::optional<Block> place(const Request& request) override;
  void release(const Block& block) override;
  Bytes largest_hole() const override { return capacity_ - raw_ - pool_size_; }

  std::vector<Count> counts() const override;

  SmartPoolReport report() const;

 private:
  struct Live {
    std::size_t event = 0;  ///< that allocated it
    Bytes size;
    std::optional<std::size_t> slot;  ///< none: raw
  };

  void end_event();
  void search();
  void switch_over();
  std::optional<Block> from_pool(Bytes size);
  bool is_free(Bytes offset, Bytes size) const;
  void count_load();

  SmartPoolFit fit_;
  Device* device_ = nullptr;
  Bytes capacity_;
  std::vector<SmartPoolEvent> events_;  ///< up to the switch
  std::size_t count_ = 0;               ///< mallocs and frees so far
  std::size_t next_search_ = 0;
  SmartPoolPeriod period_;
  std::size_t switch_at_ = 0;  ///< event from which the pool serves; meaningful once period_ is found
  bool searching_ = true;
  bool serving_ = false;

  Bytes pool_at_, pool_size_, cross_;
  std::vector<std::optional<SmartPoolSlot>> slots_;  ///< by event of the iteration
  std::map<Bytes, Bytes> taken_;                     ///< sizes of blocks in the pool, by offset
  std::unordered_map<std::int64_t, Live> live_;      ///< by address

  Bytes raw_, pooled_;  ///< live bytes
  Bytes most_raw_, most_pooled_, raw_at_most_pooled_;
  std::int64_t hits_ = 0, misses_ = 0;
};

}  // namespace tidepool
