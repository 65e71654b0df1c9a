// The CUDA runtime's entry points about streams, events and graphs.
#include <algorithm>

#include "tracer/dry/device/dry_device.hpp"

using namespace tidepool::dry;

namespace {

Stream& stream_of(void* handle) { return DryDevice::get().stream(handle); }

Status make_event(void** event) {
  *event = DryDevice::get().make_event();
  return done(kSuccess);
}

Status make_stream(void** stream, unsigned flags, int priority) {
  *stream = DryDevice::get().make_stream(flags, priority);
  return done(kSuccess);
}

constexpr int kNotCapturing = 0, kCapturing = 1;
int capture_status(void* stream) { return stream_of(stream).capture != nullptr ? kCapturing : kNotCapturing; }

void begin_capture(Stream& stream, Graph& graph) {
  stream.capture = &graph;
  graph.streams.insert(&stream);
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

Status cudaStreamCreate(void** stream) { return make_stream(stream, 0, 0); }
Status cudaStreamCreateWithFlags(void** stream, unsigned flags) { return make_stream(stream, flags, 0); }
Status cudaStreamCreateWithPriority(void** stream, unsigned flags, int priority) {
  return make_stream(stream, flags, priority);
}
Status cudaStreamDestroy(void* stream) {
  if (&stream_of(stream) == &stream_of(nullptr)) return done(kInvalidHandle);
  delete static_cast<Stream*>(stream);
  return done(kSuccess);
}
Status cudaStreamSynchronize(void* stream) {
  pending_results().fetch(stream_of(stream).results);
  return done(kSuccess);
}
Status cudaStreamQuery(void*) { return done(kSuccess); }
Status cudaStreamGetPriority(void* stream, int* priority) {
  *priority = stream_of(stream).priority;
  return done(kSuccess);
}
Status cudaStreamGetFlags(void* stream, unsigned* flags) {
  *flags = stream_of(stream).flags;
  return done(kSuccess);
}
Status cudaStreamGetId(void* stream, unsigned long long* id) {
  *id = stream_of(stream).id;
  return done(kSuccess);
}
Status cudaStreamGetDevice(void*, int* device) {
  *device = DryDevice::device();
  return done(kSuccess);
}
Status cudaStreamWaitEvent(void* stream, void* event, unsigned) {
  DryDevice::get().wait(stream_of(stream), *static_cast<Event*>(event));
  return done(kSuccess);
}
Status cudaStreamAddCallback(void* stream, void (*call)(void*, Status, void*), void* data, unsigned) {
  DryDevice::get().submit(stream_of(stream), [=](Stream&) { call(stream, kSuccess, data); });
  return done(kSuccess);
}
Status cudaLaunchHostFunc(void* stream, void (*call)(void*), void* data) {
  DryDevice::get().submit(stream_of(stream), [=](Stream&) { call(data); });
  return done(kSuccess);
}

Status cudaEventCreate(void** event) { return make_event(event); }
Status cudaEventCreateWithFlags(void** event, unsigned) { return make_event(event); }
Status cudaEventDestroy(void* event) {
  delete static_cast<Event*>(event);
  return done(kSuccess);
}
Status cudaEventRecord(void* event, void* stream) {
  DryDevice::get().record(*static_cast<Event*>(event), stream_of(stream));
  return done(kSuccess);
}
Status cudaEventRecordWithFlags(void* event, void* stream, unsigned) { return cudaEventRecord(event, stream); }
Status cudaEventQuery(void*) { return done(kSuccess); }
Status cudaEventSynchronize(void* event) {
  pending_results().fetch(static_cast<Event*>(event)->results);
  return done(kSuccess);
}
Status cudaEventElapsedTime(float* milliseconds, void* start, void* end) {
  const auto first = static_cast<double>(static_cast<Event*>(start)->time_ns);
  *milliseconds = static_cast<float>((static_cast<double>(static_cast<Event*>(end)->time_ns) - first) * 1e-6);
  return done(kSuccess);
}
Status cudaEventElapsedTime_v2(float* milliseconds, void* start, void* end) {
  return cudaEventElapsedTime(milliseconds, start, end);
}
Status cudaIpcGetEventHandle(void*, void*) { return done(kNotSupported); }
Status cudaIpcOpenEventHandle(void**, const void*) { return done(kNotSupported); }

Status cudaThreadExchangeStreamCaptureMode(int*) { return done(kSuccess); }
Status cudaStreamIsCapturing(void* stream, int* status) {
  *status = capture_status(stream);
  return done(kSuccess);
}
Status cudaStreamGetCaptureInfo(void* stream, int* status, unsigned long long* id, void** graph,
                                const void** dependencies, const void** edges, std::size_t* count) {
  Graph* const capture = stream_of(stream).capture;
  *status = capture_status(stream);
  if (id != nullptr) *id = reinterpret_cast<std::uint64_t>(capture);
  if (graph != nullptr) *graph = capture;
  if (dependencies != nullptr) *dependencies = nullptr;
  if (edges != nullptr) *edges = nullptr;
  if (count != nullptr) *count = 0;
  return done(kSuccess);
}
Status cudaStreamGetCaptureInfo_v2(void* stream, int* status, unsigned long long* id, void** graph,
                                   const void** dependencies, std::size_t* count) {
  return cudaStreamGetCaptureInfo(stream, status, id, graph, dependencies, nullptr, count);
}
Status cudaStreamGetCaptureInfo_v3(void* stream, int* status, unsigned long long* id, void** graph,
                                   const void** dependencies, const void** edges, std::size_t* count) {
  return cudaStreamGetCaptureInfo(stream, status, id, graph, dependencies, edges, count);
}
Status cudaStreamUpdateCaptureDependencies(void*, void*, const void*, std::size_t, unsigned) { return done(kSuccess); }
Status cudaStreamBeginCapture(void* stream, int) {
  begin_capture(stream_of(stream), *new Graph);
  return done(kSuccess);
}
Status cudaStreamBeginCaptureToGraph(void* stream, void* graph, const void*, const void*, std::size_t, int) {
  begin_capture(stream_of(stream), *static_cast<Graph*>(graph));
  return done(kSuccess);
}
Status cudaStreamEndCapture(void* stream, void** graph) {
  Graph* const capture = stream_of(stream).capture;
  if (capture == nullptr) return done(kCaptureInvalid);
  for (Stream* const joined : capture->streams) joined->capture = nullptr;
  capture->streams.clear();
  *graph = capture;
  return done(kSuccess);
}

// A graph holds work in issue order; it has no separate nodes.
Status cudaGraphCreate(void** graph, unsigned) {
  *graph = new Graph;
  return done(kSuccess);
}
Status cudaGraphInstantiate(void** executable, void* graph, unsigned long long) {
  *executable = new Graph{static_cast<Graph*>(graph)->work, {}};
  return done(kSuccess);
}
Status cudaGraphInstantiateWithFlags(void** executable, void* graph, unsigned long long flags) {
  return cudaGraphInstantiate(executable, graph, flags);
}
Status cudaGraphLaunch(void* executable, void* stream) {
  Stream& target = stream_of(stream);
  target.replaying = true;
  for (const auto& work : static_cast<Graph*>(executable)->work) DryDevice::get().submit(target, work);
  target.replaying = false;
  return done(kSuccess);
}
Status cudaGraphUpload(void*, void*) { return done(kSuccess); }
Status cudaGraphDestroy(void* graph) {
  delete static_cast<Graph*>(graph);
  return done(kSuccess);
}
Status cudaGraphExecDestroy(void* executable) { return cudaGraphDestroy(executable); }
/// Gives only the number of nodes: the dry device has no handles of nodes.
Status cudaGraphGetNodes(void* graph, void** nodes, std::size_t* count) {
  if (nodes != nullptr) std::fill_n(nodes, *count, nullptr);
  *count = static_cast<Graph*>(graph)->work.size();
  return done(kSuccess);
}
Status cudaGraphNodeGetDependencies(void*, void*, void*, std::size_t* count) {
  *count = 0;
  return done(kSuccess);
}
Status cudaGraphAddNode(void**, void*, const void*, const void*, std::size_t, void*) {
  not_answered("cudaGraphAddNode");
  return done(kNotSupported);
}
Status cudaGraphConditionalHandleCreate(void*, void*, unsigned, unsigned) {
  not_answered("cudaGraphConditionalHandleCreate");
  return done(kNotSupported);
}
Status cudaGraphRetainUserObject(void*, void*, unsigned, unsigned) { return done(kSuccess); }
Status cudaUserObjectCreate(void** object, void*, void (*)(void*), unsigned, unsigned) {
  *object = &DryDevice::get();
  return done(kSuccess);
}
Status cudaUserObjectRelease(void*, unsigned) { return done(kSuccess); }

}  // extern "C"
#pragma GCC visibility pop
