// The names of records and their fields in JSON lines; FORMAT.md lists them. The names of enumeration values are in
// words<Enum>() of traces/names.hpp.
#pragma once

#include "tracer/raw/records.hpp"

namespace tidepool::raw {

/// fields(record, f) calls f(name, field) for each field except `uses` of launches and operators, and reserved ones.
template <class F>
void fields(Info& r, F&& f) {
  f("key", r.key), f("value", r.value);
}
template <class F>
void fields(ClockReading& r, F&& f) {
  f("time", r.time), f("realtime", r.realtime), f("monotonic_raw", r.monotonic_raw);
}
template <class F>
void fields(DeviceInfo& r, F&& f) {
  f("memory", r.memory), f("bandwidth", r.bandwidth), f("name", r.name), f("device", r.device);
  f("multiprocessors", r.multiprocessors), f("compute", r.compute);
}
template <class F>
void fields(Context& r, F&& f) {
  f("context", r.context), f("device", r.device);
}
template <class F>
void fields(Stream& r, F&& f) {
  f("handle", r.handle), f("context", r.context), f("stream", r.stream), f("priority", r.priority);
  f("flags", r.flags);
}
template <class F>
void fields(Memory& r, F&& f) {
  f("time", r.time), f("address", r.address), f("size", r.size), f("pool", r.pool), f("device", r.device);
  f("context", r.context), f("stream", r.stream), f("correlation", r.correlation), f("thread", r.thread);
  f("source", r.source), f("name", r.name), f("operation", r.operation), f("memory", r.memory), f("async", r.async);
  f("pool_kind", r.pool_kind);
}
template <class F>
void fields(MemoryPool& r, F&& f) {
  f("time", r.time), f("address", r.address), f("size", r.size), f("utilized", r.utilized);
  f("release_threshold", r.release_threshold), f("least_kept", r.least_kept), f("device", r.device);
  f("correlation", r.correlation), f("operation", r.operation), f("pool_kind", r.pool_kind);
}
template <class F>
void fields(FrameworkMemory& r, F&& f) {
  f("time", r.time), f("address", r.address), f("size", r.size), f("stream", r.stream);
  f("pool_owner", r.pool_owner), f("pool_number", r.pool_number), f("device", r.device), f("thread", r.thread);
  f("name", r.name), f("action", r.action), f("category", r.category);
}
template <class F>
void fields(Vmm& r, F&& f) {
  f("time", r.time), f("address", r.address), f("size", r.size), f("handle", r.handle), f("offset", r.offset);
  f("device", r.device), f("correlation", r.correlation), f("thread", r.thread), f("operation", r.operation);
}
template <class F>
void fields(Kernel& r, F&& f) {
  f("start", r.start), f("end", r.end), f("graph_node", r.graph_node), f("name", r.name), f("device", r.device);
  f("context", r.context), f("stream", r.stream), f("correlation", r.correlation), f("graph", r.graph);
  f("grid_x", r.grid[0]), f("grid_y", r.grid[1]), f("grid_z", r.grid[2]);
  f("block_x", r.block[0]), f("block_y", r.block[1]), f("block_z", r.block[2]);
  f("static_shared", r.static_shared), f("dynamic_shared", r.dynamic_shared), f("local", r.local);
  f("registers", r.registers);
}
template <class F>
void fields(Copy& r, F&& f) {
  f("start", r.start), f("end", r.end), f("size", r.size), f("graph_node", r.graph_node), f("from", r.from);
  f("to", r.to), f("device", r.device), f("context", r.context), f("stream", r.stream);
  f("correlation", r.correlation), f("graph", r.graph), f("from_device", r.from_device);
  f("to_device", r.to_device), f("copy", r.copy), f("from_memory", r.from_memory), f("to_memory", r.to_memory);
}
template <class F>
void fields(Memset& r, F&& f) {
  f("start", r.start), f("end", r.end), f("size", r.size), f("graph_node", r.graph_node), f("address", r.address);
  f("device", r.device), f("context", r.context), f("stream", r.stream), f("correlation", r.correlation);
  f("graph", r.graph), f("value", r.value), f("memory", r.memory);
}
template <class F>
void fields(BufferUse& r, F&& f) {
  f("address", r.address), f("size", r.size), f("offset", r.offset), f("parameter", r.parameter);
  f("access", r.access), f("evidence", r.evidence);
}
template <class F>
void fields(Launch& r, F&& f) {
  f("start", r.start), f("end", r.end), f("function", r.function), f("graph_node", r.graph_node);
  f("correlation", r.correlation), f("context", r.context), f("stream", r.stream), f("thread", r.thread);
  f("graph", r.graph), f("unknown_pointers", r.unknown_pointers), f("flags", r.flags);
  f("inner_correlation", r.inner_correlation), f("driver_correlation", r.driver_correlation);
}
template <class F>
void fields(Api& r, F&& f) {
  f("start", r.start), f("end", r.end), f("name", r.name), f("correlation", r.correlation), f("thread", r.thread);
  f("result", r.result), f("layer", r.layer);
}
template <class F>
void fields(Sync& r, F&& f) {
  f("start", r.start), f("end", r.end), f("sync_id", r.sync_id), f("context", r.context), f("stream", r.stream);
  f("event", r.event), f("correlation", r.correlation), f("result", r.result), f("sync", r.sync);
}
template <class F>
void fields(EventRecord& r, F&& f) {
  f("time", r.time), f("device_time", r.device_time), f("sync_id", r.sync_id), f("context", r.context);
  f("stream", r.stream), f("event", r.event), f("correlation", r.correlation);
}
template <class F>
void fields(Range& r, F&& f) {
  f("time", r.time), f("id", r.id), f("name", r.name), f("domain", r.domain), f("thread", r.thread);
  f("action", r.action), f("meaning", r.meaning);
}
template <class F>
void fields(FrameworkOp& r, F&& f) {
  f("start", r.start), f("end", r.end), f("id", r.id), f("sequence", r.sequence), f("name", r.name);
  f("schema", r.schema), f("module", r.module), f("thread", r.thread), f("phase", r.phase), f("random", r.random);
  f("work", r.work), f("estimate", r.estimate), f("line", r.line);
}
template <class F>
void fields(External& r, F&& f) {
  f("id", r.id), f("correlation", r.correlation), f("external_kind", r.external_kind);
}
template <class F>
void fields(Overhead& r, F&& f) {
  f("start", r.start), f("end", r.end), f("name", r.name), f("thread", r.thread);
}
template <class F>
void fields(Loss& r, F&& f) {
  f("time", r.time), f("count", r.count), f("loss", r.loss);
}
template <class F>
void fields(Communicator& r, F&& f) {
  f("id", r.id), f("rank", r.rank), f("ranks", r.ranks);
}
template <class F>
void fields(Collective& r, F&& f) {
  f("communicator", r.communicator), f("sequence", r.sequence), f("size", r.size), f("name", r.name);
  f("correlation", r.correlation), f("peer", r.peer);
}

/// Calls f.template operator()<Record>("name") for each kind of record except texts.
template <class F>
void each_kind(F&& f) {
  f.template operator()<Info>("info");
  f.template operator()<ClockReading>("clock");
  f.template operator()<DeviceInfo>("device");
  f.template operator()<Context>("context");
  f.template operator()<Stream>("stream");
  f.template operator()<Memory>("memory");
  f.template operator()<MemoryPool>("pool");
  f.template operator()<FrameworkMemory>("framework_memory");
  f.template operator()<Vmm>("vmm");
  f.template operator()<Kernel>("kernel");
  f.template operator()<Copy>("copy");
  f.template operator()<Memset>("memset");
  f.template operator()<Launch>("launch");
  f.template operator()<Api>("api");
  f.template operator()<Sync>("sync");
  f.template operator()<EventRecord>("event_record");
  f.template operator()<Range>("range");
  f.template operator()<FrameworkOp>("framework_op");
  f.template operator()<External>("external");
  f.template operator()<Overhead>("overhead");
  f.template operator()<Loss>("loss");
  f.template operator()<Communicator>("communicator");
  f.template operator()<Collective>("collective");
}

}  // namespace tidepool::raw
