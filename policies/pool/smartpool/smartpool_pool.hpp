// SmartPool's run-time memory pool, as its authors published it.
#pragma once

#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "policies/pool/smartpool/smartpool_plan.hpp"
#include "simulator/pool.hpp"

namespace tidepool {

/// The results of a run of SmartPool, as its authors count them: over all events up to two iterations after the pool
/// began to serve. "Raw" blocks are those that cudaMalloc serves.
struct SmartPoolReport {
  SmartPoolPeriod period;   ///< length 0: the pool never served, all blocks are raw
  Bytes pool;               ///< height of the pool
  Bytes load;               ///< the larger of the most raw bytes and all live bytes at the time when the most bytes of
                            ///< the pool are live
  Bytes usage;              ///< the same with `pool` in place of the live bytes of the pool
  std::int64_t hits = 0;    ///< mallocs served by the pool, in the whole run
  std::int64_t misses = 0;  ///< mallocs after the switch that went to cudaMalloc, in the whole run
};

/// SmartPool (Zhang, Yeung, Shu, He, Wang, "Efficient Memory Management for GPU-based Deep Learning Systems", arXiv
/// 1903.06631, section 3; code: github.com/junzhezhang/onlineColoring and memInfo).
///
/// At first, SmartPool serves every block by a cudaMalloc and records the string of mallocs and frees. It searches the
/// string for a repetition after 300 events, and after each search again when the number of events has doubled. If it
/// finds one, it serves from one pool from the next beginning of an iteration on. The slot of a malloc has the index
/// (number of the event - location) % length, see SmartPoolPeriod. The slot serves only its planned size. The block
/// gets the slot's place; if that is taken and the slot's block lives into the next iteration, it gets the slot's
/// second place. Any other malloc is a miss, served by cudaMalloc. Blocks of cudaMalloc never move into the pool.
///
/// As published, after one additional or missing event every later look-up finds a wrong slot; it is a miss only if the
/// sizes differ. Four things differ from the published code, which would crash or hand out memory that is in use:
///   - the request is a miss if the slot's places are taken, even if only in part by a block of another slot,
///   - if the device refuses the pool, SmartPool continues without it,
///   - an iteration that would begin with a free begins with the next malloc,
///   - the string is complete. The published code sorts its blocks by address, reads past their end, and so leaves out
///     the last one if it is not freed. So the beginnings that it prints for its own logs are one event earlier.
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
    std::size_t event = 0;  ///< its malloc
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
