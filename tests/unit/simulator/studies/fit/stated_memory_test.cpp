// Verdicts on jobs whose allocator has stated how much memory it took.
#include "simulator/studies/fit/stated_memory.hpp"

#include <map>
#include <string>

#include "simulator/studies/fit/fit.hpp"
#include "tests/catch.hpp"
#include "tracer/dry/allocator_record.hpp"
#include "traces/builder.hpp"

namespace tidepool::stated_memory_test {
namespace {

constexpr Bytes kMiB{1 << 20};

using Facts = std::map<std::string, std::string>;

std::string mib(std::int64_t count) { return std::to_string(count << 20); }

/// The verdict on a recorded step with 100 MiB and 30 MiB alive at once, on a T4 with a memory for its allocator.
Fit fit_of(const Facts& facts, std::int64_t allocator_mib) {
  TraceBuilder build;
  build.meta() = {{"source", "raw"}, {"capture", "interposer"}};
  build.meta().insert(facts.begin(), facts.end());
  build.alloc({.size = kMiB * 100});
  build.alloc({.size = kMiB * 30});
  DeviceBudget device = device_budget("t4");
  device.total = kMiB * allocator_mib + device.context.expected;
  return predict_fit(build.finish(), device, "pytorch");
}

}  // namespace

TEST_CASE("a job takes what its allocator stated, also outside of the recorded step") {
  const Facts facts{{"allocated_peak_bytes", mib(400)}, {"reserved_peak_bytes", mib(500)}};
  const Fit ample = fit_of(facts, 600);
  CHECK(ample.fits);
  CHECK(ample.reserved == kMiB * 500);
  CHECK_FALSE(ample.compared);          // a replay of this step says nothing about the whole job
  const Fit less = fit_of(facts, 450);  // the allocator would have to give back memory: nobody knows whether it can
  CHECK_FALSE(less.fits);
  CHECK_FALSE(less.certain);
  CHECK(less.untried == kMiB * 450 + device_budget("t4").context.low);
  CHECK(less.reserved == kMiB * 500);
  const Fit least = fit_of(facts, 399);  // less than the tensors take
  CHECK_FALSE(least.fits);
  CHECK_FALSE(least.untried);
}

TEST_CASE("a job whose statement is what a replay gives is judged by the replay on smaller devices") {
  const Facts facts{{"allocated_peak_bytes", mib(130)}, {"reserved_peak_bytes", mib(130)}};
  CHECK(fit_of(facts, 130).fits);
  const Fit less = fit_of(facts, 129);
  CHECK_FALSE(less.fits);
  CHECK_FALSE(less.untried);
  Facts graphs = facts;
  graphs["captured_memory"] = "1";  // pools of graphs are not in the replay
  CHECK(fit_of(graphs, 130).fits);
}

TEST_CASE("whether less memory is enough for a job that gave segments back is not judged by a replay") {
  // In a replay, 30 MiB are in the cached segment of 100 MiB, which stays, and 90 MiB need a segment of their own. If
  // the job has emptied the cache before, it needs 120 MiB. No trace shows that.
  const auto fit = [](const Facts& facts) {
    TraceBuilder build;
    build.meta() = {{"source", "raw"}, {"capture", "interposer"}};
    build.meta().insert(facts.begin(), facts.end());
    build.free(build.alloc({.size = kMiB * 100}));
    build.alloc({.size = kMiB * 30});
    build.alloc({.size = kMiB * 90});
    DeviceBudget device = device_budget("t4");
    device.total = kMiB * 150 + device.context.expected;
    return predict_fit(build.finish(), device, "pytorch");
  };
  Facts facts{{"allocated_peak_bytes", mib(120)}, {"reserved_peak_bytes", mib(190)}};
  const Fit replayed = fit(facts);
  CHECK_FALSE(replayed.fits);
  CHECK_FALSE(replayed.untried);
  facts["freed_segments"] = "1";
  const Fit open = fit(facts);
  CHECK_FALSE(open.fits);
  CHECK_FALSE(open.certain);
  CHECK(open.untried);
}

TEST_CASE("a job that ran out of memory never fits a device of no more memory") {
  const auto total = [](std::int64_t allocator_mib) {
    return std::to_string((kMiB * allocator_mib + device_budget("t4").context.expected).count());
  };
  const Facts facts{{"failure", "OutOfMemoryError: CUDA out of memory."},
                    {"device_total_bytes", total(400)},
                    {"allocated_peak_bytes", mib(380)},
                    {"reserved_peak_bytes", mib(390)},
                    {"failed_requests", "1"},
                    {"failed_request_bytes", mib(50)},
                    {"failed_allocated_bytes", mib(370)}};
  CHECK_FALSE(fit_of(facts, 400).fits);
  CHECK_FALSE(fit_of(facts, 410).fits);  // 370 and 50 MiB are wanted at once
  const Fit more = fit_of(facts, 500);
  CHECK(more.fits);
  CHECK(more.unknown_beyond);
}

TEST_CASE("a failed request is a failure on a device of no more memory, though the bytes alone would have room") {
  const Facts torchrun{{"failure", "ended with exit status 1"},  // the rank's own reason is not known
                       {"device_total_bytes", std::to_string((kMiB * 400 + device_budget("t4").context.low).count())},
                       {"allocated_peak_bytes", mib(320)},
                       {"reserved_peak_bytes", mib(390)},
                       {"failed_requests", "1"},
                       {"failed_request_bytes", mib(50)},
                       {"failed_allocated_bytes", mib(320)}};
  const Fit here = fit_of(torchrun, 400);
  CHECK_FALSE(here.fits);
  CHECK(here.certain);
  CHECK(here.reserved > kMiB * 400);
  CHECK_FALSE(here.compared);  // nobody knows whether another setting would have been enough
  CHECK(fit_of(torchrun, 500).unknown_beyond);
  Facts other = torchrun;
  other["rank"] = "0";
  other["failure"] = "OutOfMemoryError: CUDA out of memory.";
  CHECK_FALSE(fit_of(other, 400).fits);
  other.erase("failed_requests");  // another rank has failed
  CHECK(fit_of(other, 400).fits);
}

TEST_CASE("a job that goes on where a request fails, or asks for the memory, may need another part of another device") {
  const Facts facts{
      {"device_total_bytes", std::to_string((kMiB * 9000 + device_budget("t4").context.expected).count())},
      {"allocated_peak_bytes", mib(130)},
      {"reserved_peak_bytes", mib(130)},
      {"failed_requests", "1"}};
  CHECK(fit_of(facts, 9000).certain);
  const Fit larger = fit_of(facts, 10'000), smaller = fit_of(facts, 50);
  CHECK(larger.fits);
  CHECK_FALSE(larger.certain);
  CHECK_FALSE(smaller.fits);
  CHECK_FALSE(smaller.certain);
  const Facts asked{{"device_told_bytes", facts.at("device_total_bytes")},
                    {"allocated_peak_bytes", mib(130)},
                    {"reserved_peak_bytes", mib(130)},
                    {"asked_memory", "1"}};
  CHECK(fit_of(asked, 9000).certain);
  CHECK_FALSE(fit_of(asked, 10'000).certain);
  CHECK_FALSE(fit_of(asked, 50).certain);
}

TEST_CASE("a verdict that rests on an assumption is not for certain") {
  const Facts stated{{"allocated_peak_bytes", mib(130)}, {"reserved_peak_bytes", mib(130)}};
  CHECK(fit_of(stated, 9000).certain);
  Facts assumed = stated;
  assumed["assumed_sizes"] = "train.py:7: the size of nonzero rests on values that a dry run does not compute";
  CHECK_FALSE(fit_of(assumed, 9000).certain);
  Facts untuned = stated;
  untuned["assumed_tuning"] = "the first configuration is taken";
  CHECK_FALSE(fit_of(untuned, 9000).certain);
}

TEST_CASE("with an allocator that is not modelled, only a job whose tensors are too large is judged for certain") {
  // The replay of PyTorch's own allocator would reserve 200 MiB.
  const auto fit = [](std::int64_t allocator_mib) {
    TraceBuilder build;
    build.meta() = {
        {"source", "raw"}, {"setting.alloc_conf", "backend:cudaMallocAsync"}, {"mapped_peak_bytes", mib(110)}};
    build.free(build.alloc({.size = kMiB * 90}));
    build.alloc({.size = kMiB * 110});
    DeviceBudget device = device_budget("t4");
    device.total = kMiB * allocator_mib + device.context.expected;
    return predict_fit(build.finish(), device, "");
  };
  CHECK(fit(9000).fits);
  CHECK_FALSE(fit(9000).certain);
  CHECK_FALSE(fit(105).fits);
  CHECK(fit(105).certain);
}

TEST_CASE("a job has no more than its share of the device's memory") {
  Facts facts{{"allocated_peak_bytes", mib(130)}, {"reserved_peak_bytes", mib(130)}};
  CHECK(fit_of(facts, 200).fits);
  facts["setting.alloc_conf"] = "per_process_memory_fraction:0.25";
  CHECK_FALSE(fit_of(facts, 200).fits);
}

TEST_CASE("PyTorch's allocator collects garbage only for a job that has limited its share of the memory") {
  // With the collector, the request of 90 MiB gives back the cached segment of 50 MiB: 180 MiB are reserved in the end.
  // Without it, 30 MiB take that segment: 200 MiB.
  const auto fit = [](const Facts& facts) {
    TraceBuilder build;
    build.meta() = {{"source", "raw"}, {"setting.alloc_conf", "garbage_collection_threshold:0.1"}};
    build.meta().insert(facts.begin(), facts.end());
    build.free(build.alloc({.size = kMiB * 50}));
    for (const int size : {90, 30, 60}) build.alloc({.size = kMiB * size});
    DeviceBudget device = device_budget("t4");
    device.total = kMiB * 185 + device.context.expected;
    return predict_fit(build.finish(), device, "pytorch");
  };
  Facts facts{{"allocated_peak_bytes", mib(180)}, {"reserved_peak_bytes", mib(200)}};
  const Fit without = fit(facts);
  CHECK_FALSE(without.fits);
  CHECK_FALSE(without.untried);
  facts["setting.memory_fraction"] = "0.9";
  CHECK(fit(facts).untried);  // by a share of memory that the replay does not know
}

TEST_CASE(
    "a job whose share of another device is filled far enough to collect garbage is not judged by its recording") {
  // 130 MiB are more than a tenth of half of 2000 MiB, and less than a tenth of half of 4000 MiB.
  const Bytes context = device_budget("t4").context.expected;
  const auto total = [&](std::int64_t allocator_mib) {
    return std::to_string((kMiB * allocator_mib + context).count());
  };
  Facts facts{{"setting.alloc_conf", "garbage_collection_threshold:0.1"},
              {"setting.memory_fraction", "0.5"},
              {"device_told_bytes", total(9000)},
              {"allocated_peak_bytes", mib(130)},
              {"reserved_peak_bytes", mib(130)}};
  CHECK(fit_of(facts, 4000).fits);
  const Fit open = fit_of(facts, 2000);
  CHECK_FALSE(open.fits);
  CHECK(open.untried);
  facts["device_told_bytes"] = total(2000);
  CHECK(fit_of(facts, 2000).fits);        // as recorded
  CHECK_FALSE(fit_of(facts, 4000).fits);  // it collected garbage there, and would not here
}

TEST_CASE("the settings of a snapshot are those of its job, and what it reserved is known only under them") {
  const Facts facts{{"source", "torch-snapshot"},
                    {"allocator_conf", "expandable_segments:True"},
                    {"allocated_peak_bytes", mib(130)},
                    {"reserved_peak_bytes", mib(500)}};
  TraceBuilder build;
  build.meta().insert(facts.begin(), facts.end());
  build.alloc({.size = kMiB * 130});
  const Fit fit = predict_fit(build.finish(), device_budget("t4"), "");
  CHECK(fit.allocator.pool == "pytorch-expandable");
  CHECK(fit.reserved == kMiB * 500);
  CHECK_FALSE(fit.compared);  // a replay gives 130 MiB
}

TEST_CASE("the settings of PyTorch's allocator are those of its model") {
  const auto options = allocator_options("max_split_size_mb:128, expandable_segments:True");
  REQUIRE(options);
  CHECK(options->pool == "pytorch-expandable");
  CHECK(options->values == std::map<std::string, std::string>{{"max_split_size", "128MiB"}});
  const auto list = allocator_options("roundup_power2_divisions:[256:1,>:4],garbage_collection_threshold:0.8");
  REQUIRE(list);
  CHECK(list->pool == "pytorch");
  CHECK(list->values.at("roundup_power2_divisions") == "[256:1,>:4]");
  CHECK(list->values.at("garbage_collection_threshold") == "0.8");
  CHECK_FALSE(allocator_options("backend:cudaMallocAsync"));
  CHECK(allocator_options("backend:native"));
}

TEST_CASE("segments are held while they have tensors, and those of a captured graph until they are freed") {
  dry::AllocatorRecord record;
  record.tensor_begins(0, 20, false);
  record.tensor_begins(0, 20, false);
  record.tensor_begins(100, 30, true);
  CHECK(record.most_held() == 50);
  record.tensor_ends(0);
  record.tensor_ends(100);  // stays
  record.tensor_begins(200, 7, false);
  CHECK(record.most_held() == 57);
  record.tensor_ends(0);
  record.tensor_begins(300, 20, false);  // in the place of the first segment, which is only cached
  CHECK(record.most_held() == 57);
  record.segment_ends(100);
  record.tensor_begins(400, 30, false);
  CHECK(record.most_held() == 57);
  record.failed({.requested = 5, .allocated = 50});
  record.failed({.requested = 9, .allocated = 40});
  CHECK(record.failures() == 2);
  CHECK(record.failure().requested == 5);
}

}  // namespace tidepool::stated_memory_test
