#include "tracer/raw/fields.hpp"

#include <array>
#include <span>
#include <string_view>

#include "traces/names.hpp"

namespace tidepool {
namespace {

using Words = std::span<const std::string_view>;

template <std::size_t N>
using Names = std::array<std::string_view, N>;

constexpr Names<6> kSources{"unknown", "cupti", "interposer", "torch", "jax", "tensorflow"};
constexpr Names<4> kClocks{"unknown", "realtime", "monotonic_raw", "cupti"};
constexpr Names<4> kMemoryOperations{"unknown", "alloc", "free", "existing"};
constexpr Names<8> kMemoryKinds{"unknown", "pageable", "pinned",        "device",
                                "array",   "managed",  "device_static", "managed_static"};
constexpr Names<3> kPoolKinds{"none", "local", "imported"};
constexpr Names<4> kPoolOperations{"unknown", "create", "destroy", "trim"};
constexpr Names<12> kActions{"unknown",       "alloc",        "free_requested", "free_completed",
                             "segment_alloc", "segment_free", "segment_map",    "segment_unmap",
                             "oom",           "snapshot",     "existing",       "segment_existing"};
constexpr Names<7> kCategories{"unknown",    "parameter", "gradient", "optimizer_state",
                               "activation", "workspace", "input"};
constexpr Names<7> kVmmOperations{"unknown", "reserve", "create", "map", "unmap", "release", "address_free"};
constexpr Names<11> kCopyKinds{"unknown", "htod", "dtoh", "htoa", "atoh", "atoa",
                               "atod",    "dtoa", "dtod", "htoh", "ptop"};
constexpr Names<5> kAccesses{"unknown", "read", "write", "read_write", "touch"};
constexpr Names<7> kEvidences{"unknown", "schema", "copy", "const", "instrumented", "parameter", "inferred"};
constexpr Names<4> kLayers{"unknown", "runtime", "driver", "internal"};
constexpr Names<5> kSyncKinds{"unknown", "event", "stream_waits_event", "stream", "context"};
constexpr Names<6> kRangeActions{"unknown", "push", "pop", "begin", "end", "mark"};
constexpr Names<5> kMeanings{"range", "iteration", "phase", "module", "op"};
constexpr Names<4> kPhases{"unknown", "forward", "backward", "optimizer"};
constexpr Names<4> kWork{"kernel", "copy", "source", "host_wait"};
constexpr Names<8> kLossKinds{"unknown",         "dropped_records", "zero_timestamps", "unknown_pointers",
                              "unmatched_frees", "disk_full",       "buffers_full",    "unscanned_launches"};

}  // namespace

// clang-format off
template <> Words words<raw::Source>() { return kSources; }
template <> Words words<raw::Clock>() { return kClocks; }
template <> Words words<raw::MemoryOperation>() { return kMemoryOperations; }
template <> Words words<raw::MemoryKind>() { return kMemoryKinds; }
template <> Words words<raw::PoolKind>() { return kPoolKinds; }
template <> Words words<raw::PoolOperation>() { return kPoolOperations; }
template <> Words words<raw::Action>() { return kActions; }
template <> Words words<raw::Category>() { return kCategories; }
template <> Words words<raw::VmmOperation>() { return kVmmOperations; }
template <> Words words<raw::CopyKind>() { return kCopyKinds; }
template <> Words words<raw::Access>() { return kAccesses; }
template <> Words words<raw::Evidence>() { return kEvidences; }
template <> Words words<raw::Layer>() { return kLayers; }
template <> Words words<raw::SyncKind>() { return kSyncKinds; }
template <> Words words<raw::RangeAction>() { return kRangeActions; }
template <> Words words<raw::Meaning>() { return kMeanings; }
template <> Words words<raw::Phase>() { return kPhases; }
template <> Words words<raw::Work>() { return kWork; }
template <> Words words<raw::LossKind>() { return kLossKinds; }
// clang-format on

}  // namespace tidepool
