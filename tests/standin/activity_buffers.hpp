// Buffers of activity records, as the stand-in for CUPTI fills them and hands them out.
#pragma once

#include <cupti.h>

#include <cstddef>
#include <cstdint>
#include <mutex>

namespace standin {

inline std::mutex activity_mutex;  ///< of the buffers, and of what is enabled

/// What cuptiGetVersion answers: STANDIN_CUPTI_VERSION, or that of CUDA 12.8.
std::uint32_t cupti_version();

/// Bytes of records by the version that the library says; each version keeps the sizes until they are changed again.
/// Measured by walking through buffers with the libraries of CUDA 12.4, 12.6, 12.8, 13.0, 13.2 and 13.5; real_cupti.cpp
/// walks through buffers of the stand-in with whichever is installed.
std::size_t record_size(CUpti_ActivityKind kind);

bool has_buffer_callbacks();
void set_buffer_callbacks(CUpti_BuffersCallbackRequestFunc requested, CUpti_BuffersCallbackCompleteFunc completed);

/// Puts a record into this thread's buffer, with the bytes that the version has of it. The times of work that has not
/// ended are put in when it has, and the buffer is kept until then.
/// @param lock  of the mutex; let go while a full buffer is handed out
/// @return  false if there is no memory for it
bool add_to_buffer(CUpti_ActivityKind kind, const void* record, std::size_t bytes, std::unique_lock<std::mutex>& lock);

/// Hands out all buffers in which everything has ended, or all if that is forced: each by a thread of its own, and that
/// of the thread with the largest id first.
void hand_out_all(bool forced);

}  // namespace standin
