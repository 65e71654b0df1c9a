// Reading raw capture files, binary or JSON lines, whole or cut off by a crash.
#pragma once

#include <string_view>

#include "tracer/raw/log.hpp"
#include "traces/base/input.hpp"

namespace tidepool::raw {

/// Whether a file begins like a raw capture file, binary or JSON lines.
bool looks_raw(std::string_view head);

/// Whether the bytes of a file have a complete header: a job may be killed before it has written the header.
bool has_header(std::string_view bytes);

/// Reads a raw capture file of either form. A cut-off end after the header is not refused; its bytes are counted in the
/// log.
/// @throws InputError  "x.raw (chunk 3): checksum 0f..; the file says 1a.."
/// @throws InputError  "x.raw: format version 2; this tidepool reads version 1"
/// @throws InputError  "x.jsonl:12: 'action' is \"alok\"; expected unknown, alloc, ..."
Log read_raw(const Input& input);

/// Whether a file begins like a raw capture file of JSON lines.
bool looks_raw_json(std::string_view head);

/// Reads the lines up to the last line end. Bytes after it are a cut-off line, counted in Log::cut_off_bytes.
/// @throws InputError  "x.jsonl:12: 'action' is \"alok\"; expected unknown, alloc, ..."
Log read_raw_json(const Input& input);

}  // namespace tidepool::raw
