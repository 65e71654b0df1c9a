// Buffers of activity records, which the fake of CUPTI fills and hands out.
#pragma once

#include <cupti.h>

#include <cstddef>
#include <cstdint>
#include <mutex>

namespace fake {

inline std::mutex activity_mutex;  ///< guards the buffers, and the sets, counts and calls in cupti.cpp

/// The answer of cuptiGetVersion: FAKE_CUPTI_VERSION, or the version of CUDA 12.8.
std::uint32_t cupti_version();

/// Bytes of a record in the version that cupti_version() reports; 0 for a kind that the fake does not know. A
/// version without sizes of its own has those of the version before it. The sizes were measured by walking through
/// buffers with the libraries of CUDA 12.4, 12.6, 12.8, 13.0, 13.2 and 13.5; real_cupti.cpp walks through buffers of
/// the fake with the installed version.
std::size_t record_size(CUpti_ActivityKind kind);

/// Whether set_buffer_callbacks() was called.
bool has_buffer_callbacks();
void set_buffer_callbacks(CUpti_BuffersCallbackRequestFunc requested, CUpti_BuffersCallbackCompleteFunc completed);

/// Puts a record into this thread's buffer, with the number of bytes that the version defines. Call it only if
/// has_buffer_callbacks(). If the work of the record has not ended, the record has no times until the buffer is handed
/// out. Unless that is forced, the buffer is kept until the work has ended.
/// @param lock  holds activity_mutex; unlocked while a full buffer is handed out
/// @return  false if the tool gave no buffer for the record
bool add_to_buffer(CUpti_ActivityKind kind, const void* record, std::size_t bytes, std::unique_lock<std::mutex>& lock);

/// Hands out all buffers whose work has ended; if `forced`, all buffers. The calling thread hands out the first one: a
/// full buffer if there is one, else that of the thread with the largest id. Each other one is handed out by a new
/// thread.
void hand_out_all(bool forced);

}  // namespace fake
