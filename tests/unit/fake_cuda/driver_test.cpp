// The fake of a driver refuses the same calls as NVIDIA's driver, so that mistakes of its callers are found
// without a GPU.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <thread>
#include <vector>

#include "tests/catch.hpp"
#include "tests/fake_cuda.hpp"
#include "validator/cuda/kernels.hpp"

namespace tidepool::driver_test {

using namespace tidepool::cuda;
using tests::FakeDriver;

namespace {

constexpr Status kInvalid = 1, kInvalidContext = 201, kInvalidHandle = 400, kIllegalAddress = 700;
constexpr Status kCaptureUnsupported = 900, kCaptureUnmatched = 903, kCaptureUnjoined = 904, kCaptureIsolation = 905,
                 kCapturedEvent = 907;

/// Waits for a stream. @return the last answer of the device
Status wait(const Driver& driver, Stream stream) {
  Status status = kErrorNotReady;
  for (int i = 0; i < 100 && status == kErrorNotReady; ++i) status = driver.stream_query.status(stream);
  return status;
}

}  // namespace

TEST_CASE("the fake accepts handles only until they are released") {
  const FakeDriver device{"seed=1"};
  const Driver& driver = device.gpu().driver();
  cuda::Event event = nullptr;
  Stream stream = nullptr;
  driver(driver.event_create, &event, 0U);
  driver(driver.stream_create, &stream, kStreamNonBlocking);
  CHECK(driver.event_record.status(event, stream) == kSuccess);
  CHECK(driver.event_record.status(reinterpret_cast<cuda::Event>(stream), stream) == kInvalidHandle);
  CHECK(driver.event_record.status(event, nullptr) == kInvalidHandle);
  CHECK(driver.event_destroy.status(event) == kSuccess);
  CHECK(driver.event_destroy.status(event) == kInvalidHandle);
  CHECK(driver.event_record.status(event, stream) == kInvalidHandle);
  CHECK(driver.stream_wait.status(stream, event, 0U) == kInvalidHandle);
  CHECK(driver.stream_destroy.status(stream) == kSuccess);
  CHECK(driver.stream_query.status(stream) == kInvalidHandle);
  CHECK(driver.graph_destroy.status(reinterpret_cast<Graph>(stream)) == kInvalidHandle);
  CHECK(driver.free.status(Address{4096}) == kInvalid);
  Function function = nullptr;
  CHECK(driver.module_function.status(&function, nullptr, "tidepool_absent") == 500);
}

TEST_CASE("the fake serves only threads that have made its context current") {
  const FakeDriver device{"seed=1"};
  const Driver& driver = device.gpu().driver();
  std::thread{[&] {
    cuda::Event event = nullptr;
    CHECK(driver.event_create.status(&event, 0U) == kInvalidContext);
    Context context = nullptr;
    driver(driver.context_retain, &context, 0);
    driver(driver.context_set, context);
    CHECK(driver.event_create.status(&event, 0U) == kSuccess);
    driver(driver.event_destroy, event);
    driver(driver.context_release, 0);
  }}.join();
}

TEST_CASE("the fake copies only within allocations, and the host cannot access device memory") {
  const FakeDriver device{"seed=1"};
  const Driver& driver = device.gpu().driver();
  const Owned<Stream> stream = make_stream(device.gpu());
  const Owned<Address> memory = allocate(device.gpu(), 4096_B, "a test");
  const Owned<void*> pinned = allocate_pinned(device.gpu(), 4096_B);
  std::vector<char> pageable(4096);
  const Address at = memory.get();
  CHECK(driver.copy_in.status(at, pinned.get(), 4096, stream.get()) == kSuccess);
  CHECK(driver.copy_in.status(at + 8, pinned.get(), 4096, stream.get()) == kInvalid);
  CHECK(driver.copy_out.status(pinned.get(), at, 4097, stream.get()) == kInvalid);
  CHECK(driver.copy_out.status(pageable.data(), at, 4096, stream.get()) == kInvalid);  // it would not be asynchronous
  CHECK(driver.copy_within.status(at, at + 2048, 2049, stream.get()) == kInvalid);
  CHECK(driver.copy_in_now.status(at, pageable.data(), 4096) == kSuccess);
  CHECK(driver.copy_in_now.status(at + 1, pageable.data(), 4096) == kInvalid);
  CHECK(wait(driver, stream.get()) == kSuccess);
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  CHECK(write(ends[1], reinterpret_cast<const void*>(at), 8) == -1);
  CHECK(errno == EFAULT);
  close(ends[0]), close(ends[1]);
}

TEST_CASE("the fake stops a kernel that accesses other memory, and then the device fails") {
  for (const std::uint64_t words : {512U, 513U}) {
    const FakeDriver device{"seed=1"};
    const Driver& driver = device.gpu().driver();
    const Owned<Stream> stream = make_stream(device.gpu());
    const Owned<Address> memory = allocate(device.gpu(), 4096_B, "a test");
    const Owned<Address> spans = allocate(device.gpu(), Bytes{sizeof(Span)}, "a test");
    const Span span{memory.get(), words, words, 0};
    driver(driver.copy_in_now, spans.get(), static_cast<const void*>(&span), sizeof(span));
    launch(device.gpu(), device.gpu().kernel("tidepool_clear"), 1, 32, stream.get(), spans.get(), 0U);
    CHECK(wait(driver, stream.get()) == (words == 512 ? kSuccess : kIllegalAddress));
    if (words == 512) continue;
    cuda::Event event = nullptr;
    CHECK(driver.event_create.status(&event, 0U) == kIllegalAddress);
    device.gpu().abandon();
  }
}

TEST_CASE("the fake keeps the rules of captures") {
  const FakeDriver device{"seed=1"};
  const Driver& driver = device.gpu().driver();
  const Owned<Stream> first = make_stream(device.gpu()), second = make_stream(device.gpu());
  const Owned<cuda::Event> before = make_event(device.gpu(), true), within = make_event(device.gpu(), true);
  const Owned<Address> memory = allocate(device.gpu(), 4096_B, "a test");
  Graph graph = nullptr;
  CHECK(driver.event_record_with.status(before.get(), first.get(), kEventRecordExternal) == kInvalid);  // no capture
  driver(driver.event_record, before.get(), second.get());
  driver(driver.capture_begin, first.get(), kCaptureRelaxed);
  CHECK(driver.stream_wait.status(first.get(), before.get(), 0U) == kCaptureIsolation);
  CHECK(driver.stream_query.status(first.get()) == kCaptureUnsupported);
  CHECK(driver.capture_end.status(second.get(), &graph) == kCaptureUnmatched);
  driver(driver.event_record, within.get(), first.get());
  CHECK(driver.event_query.status(within.get()) == kCapturedEvent);
  driver(driver.stream_wait, second.get(), within.get(), 0U);  // the second stream joins the capture
  driver(driver.copy_within, memory.get(), memory.get() + 2048, std::size_t{8}, second.get());
  CHECK(driver.capture_end.status(first.get(), &graph) == kCaptureUnjoined);
  float time = 0;
  CHECK(driver.event_elapsed.status(&time, before.get(), within.get()) == kCapturedEvent);
}

}  // namespace tidepool::driver_test
